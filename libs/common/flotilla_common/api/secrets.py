"""Secrets with registry credentials. They are read directly and never travel over the bus in the clear."""

from flotilla_common.api.meta import Model, ObjectMeta


class Secret(Model):
    """The values of `data` stay base64, as Kubernetes shows them."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, str] = {}
    immutable: bool = False
