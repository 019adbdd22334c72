"""Which messages are about one object: itself, what it made, what was written on its behalf, why it stands where it is.

Dependents are told by their owner references, deletions of dependents by a uid that was seen before, and what bears
the object's name in front of its own (a stray that occupies a name) is taken, too.
"""

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.control.offline import Offline


class Interest:
    """Picks messages; learns uids from those that it picks, so it is to be asked in order."""

    def __init__(self, kind: Offline, namespace: str, name: str) -> None:
        self._kind = kind
        self._name = name
        self._owner = {"kind": kind.resource.kind, "namespace": namespace, "name": name}
        self._uids: set[str] = set()  # of the object, through its lives
        self._kept: set[str] = set()  # of dependents
        self.object_subject = subjects.kube(kind.resource, namespace, name)
        self.why_subject = subjects.why(kind.resource, namespace, name)
        self.act_filter = f"act.v1.*.*.{subjects.token(namespace)}.*"
        self.dependents = {resource: _in_namespace(resource, namespace) for resource in kind.dependents}
        self.nodes: set[str] = set()  # that pods among the picked messages run on

    @property
    def live(self) -> list[str]:
        """What to subscribe to."""
        return [self.object_subject, self.why_subject, self.act_filter, *self.dependents.values()]

    def picks(self, message: Message, body: Json) -> bool:
        """Whether the message is about the object."""
        if message.subject == self.why_subject:
            return True
        if message.subject.startswith("act.v1."):
            return member(body, "owner") == self._owner
        return bool(message.headers.get(subjects.OP)) and self._picks_object(message, body)

    def _picks_object(self, message: Message, body: Json) -> bool:
        uid = message.headers.get(subjects.UID, "")
        if message.subject == self.object_subject:
            self._uids.add(uid)
            return True
        meta = member(body, "metadata")
        owned = any(reference.get("uid") in self._uids for reference in mappings(meta.get("ownerReferences")))
        if not owned and uid not in self._kept and not text(meta.get("name")).startswith(f"{self._name}-"):
            return False
        self._kept.add(uid)
        node = text(member(body, "spec").get("nodeName"))
        if node:
            self.nodes.add(node)
        return True


def _in_namespace(resource: Resource, namespace: str) -> str:
    return f"kube.v1.{resource.id}.{subjects.token(namespace)}.*"
