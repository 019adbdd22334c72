"""Which messages are about one object: itself, what it made, what was written on its behalf, why it stands where it is,
what node agents reported about it, and whatever else its controller looks at.

Dependents are told by their owner references, deletions of dependents by a uid that was seen before, and what bears
the object's name in front of its own (a stray that occupies a name) is taken, too. What the controller looks at
besides is told by its spec (`Watch.concerns`). What it reads privately is not on the bus, unless others have it
published: that may be so with its own dependents.
"""

from collections.abc import Mapping
from typing import Any

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.resources import NODE, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch


class Interest:
    """Picks messages; learns from those that it picks, so it is to be asked in order."""

    def __init__(self, kind: ControllerSpec[Any], namespace: str, name: str) -> None:
        resource = kind.resource
        self._name = name
        self._owner = {"kind": resource.kind, "namespace": namespace, "name": name}
        self._uids: set[str] = set()  # of the object, through its lives
        self._kept: set[str] = set()  # of other objects
        self._versions: list[Json] = []  # of the object
        self.object_subject = subjects.kube(resource, namespace, name)
        self.why_subject = subjects.why(resource, namespace, name)
        self.act_filters = _writes(kind, namespace)
        self._watches = {
            _subjects(watch.resource, namespace): watch
            for watch in kind.watches
            if not watch.named and (watch.owner == resource or (watch.concerns is not None and not watch.private))
        }
        self.report_subject = ""
        if kind.reports is not None:
            place = f"{subjects.token(namespace)}.{subjects.token(name)}"
            self.report_subject = f"report.v1.*.{kind.reports.kind}.{place}"
        self.looks_at_nodes = any(watch.resource == NODE and watch.concerns is None for watch in kind.watches)
        self.nodes: set[str] = set()  # that pods among the picked messages run on

    @property
    def others(self) -> Mapping[str, Resource]:
        """The subjects of other objects that may matter, with their kinds."""
        return {subject: watch.resource for subject, watch in self._watches.items()}

    @property
    def live(self) -> list[str]:
        """What to subscribe to."""
        reports = [self.report_subject] if self.report_subject else []
        return [self.object_subject, self.why_subject, *self.act_filters, *self._watches, *reports]

    def picks(self, message: Message, body: Json) -> bool:
        """Whether the message is about the object."""
        if message.subject == self.why_subject or message.subject.startswith("report.v1."):
            return True
        if message.subject.startswith("act.v1."):
            return member(body, "owner") == self._owner
        return bool(message.headers.get(subjects.OP)) and self._picks_object(message, body)

    def _picks_object(self, message: Message, body: Json) -> bool:
        uid = message.headers.get(subjects.UID, "")
        if message.subject == self.object_subject:
            self._uids.add(uid)
            self._versions.append(body)
            return True
        watch = self._watch_of(message.subject)
        if watch is None or (uid not in self._kept and not self._matters(watch, body)):
            return False
        self._kept.add(uid)
        node = text(member(body, "spec").get("nodeName"))
        if node and self.looks_at_nodes:
            self.nodes.add(node)
        return True

    def _watch_of(self, subject: str) -> Watch[Any] | None:
        prefix = subject.split(".")[:4]
        return next((watch for pattern, watch in self._watches.items() if pattern.split(".")[:4] == prefix), None)

    def _matters(self, watch: Watch[Any], body: Json) -> bool:
        if watch.concerns is not None:
            return any(watch.concerns(version, body) for version in self._versions)
        meta = member(body, "metadata")
        owned = any(reference.get("uid") in self._uids for reference in mappings(meta.get("ownerReferences")))
        return owned or text(meta.get("name")).startswith(f"{self._name}-")


def _writes(kind: ControllerSpec[Any], namespace: str) -> list[str]:
    """Where writes on the object's behalf are told: in its namespace, and of what is written elsewhere."""
    written = [watch for watch in kind.watches if watch.writes or watch.subresources]
    elsewhere = [watch for watch in written if watch.private or watch.resource.namespaced != bool(namespace)]
    others = [f"act.v1.*.{watch.resource.plural}.*.*" for watch in elsewhere]
    return [f"act.v1.*.*.{subjects.token(namespace)}.*", *others]


def _subjects(resource: Resource, namespace: str) -> str:
    """All objects of the kind that can matter: of the object's namespace, or all where one of the two has none."""
    place = f"{subjects.token(namespace)}.*" if namespace and resource.namespaced else "*.*"
    return f"kube.v1.{resource.id}.{place}"
