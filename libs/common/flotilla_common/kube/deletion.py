"""What a DELETE says beside the name."""

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import JOB, Resource

ORPHANING = frozenset({JOB})
"""Kinds whose dependents stay if nothing is said about them, as it was before there was a garbage collector."""


def delete_options(resource: Resource, uid: str = "", resource_version: str = "") -> Json:
    """The DeleteOptions: the object with this uid in this version, any if they are empty. Its dependents go with it."""
    given = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {key: value for key, value in given.items() if value}
    options: Json = {"preconditions": preconditions} if preconditions else {}
    return options | ({"propagationPolicy": "Background"} if resource in ORPHANING else {})
