"""Watches the simulated cluster for the report.

It sees which pods become ready, go, or get containers restarted between two ticks, which nodes have pulled, and the
lowest number of serving pods.
"""

from typing import NamedTuple

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.images import is_reported_as
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import POD, Resource
from flotilla_common.model.kubelet import has_ended, is_ready, statuses_of
from flotilla_common.model.pods import is_to_end
from flotilla_common.model.store import Objects
from flotilla_insight.views.kindview import KindView

READY, GONE, RESTARTED, ANSWERED, ENDED = "ready", "gone", "restarted", "answered", "ended"


class ClusterEvent(NamedTuple):
    """An event of a pod, or of a NodeImage whose agent reported.

    For RESTARTED with the containers that were restarted with the same image.
    """

    what: str
    object: Json
    containers: tuple[str, ...] = ()


class Observer:
    """Observes the pods that belong to an object."""

    def __init__(self, objects: Objects, kind: KindView, stored: Json) -> None:
        self._objects = objects
        self._kind = kind
        self._stored = stored
        self._uid = stored["metadata"].get("uid")
        self._of_children: set[str] = set()  # uids of pods of children, which may be deleted before their pods
        self._serving = {pod["metadata"]["uid"] for pod in objects.all(POD) if self.tracked(pod) and is_serving(pod)}
        self.before = self.lowest = len(self._serving)
        self.made = self.gone = 0
        self._events: list[ClusterEvent] = []
        objects.listen(self._see)

    @property
    def serving(self) -> int:
        """Return the number of pods that serve now."""
        return len(self._serving)

    def tracked(self, pod: Json) -> bool:
        """Report whether the pod belongs to the object or to a child of it."""
        if self._kind.concerns(self._stored, pod):
            return True
        uid = pod["metadata"]["uid"]
        if self._kind.children and uid not in self._of_children and self._descends(pod, set()):
            self._of_children.add(uid)
        return uid in self._of_children

    def _descends(self, document: Json, seen: set[str]) -> bool:
        """Report whether the object owns this document, directly or through others.

        `seen`: the uids on the way, as owner references may form a cycle.
        """
        metadata = document["metadata"]
        seen.add(metadata["uid"])
        for reference in mappings(metadata.get("ownerReferences")):
            found = self._objects.referred(reference, metadata.get("namespace", ""))
            if found is None or (uid := found[1]["metadata"]["uid"]) in seen:
                continue
            if uid == self._uid or self._descends(found[1], seen):
                return True
        return False

    def take_events(self) -> list[ClusterEvent]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        pod = after or before
        if resource == NODE_IMAGE and after is not None and before is not None:
            self._events += [ClusterEvent(ANSWERED, after)] if after.get("status") != before.get("status") else []
        if resource == POD and after is not None and self._is_over(after) and not self._is_over(before or {}):
            self._events.append(ClusterEvent(ENDED, after))
        if resource != POD or pod is None or not self.tracked(pod):
            return
        self.made += before is None
        self.gone += after is None
        uid = pod["metadata"]["uid"]
        if restarts := _restarts(before, after):
            self._events.append(ClusterEvent(RESTARTED, pod, restarts))
        if after is None:
            self._events.append(ClusterEvent(GONE, pod))
        if after is not None and is_serving(after):
            if uid not in self._serving:
                self._events.append(ClusterEvent(READY, pod))
            self._serving.add(uid)
        else:
            self._serving.discard(uid)
            self.lowest = min(self.lowest, len(self._serving))

    def _is_over(self, pod: Json) -> bool:
        return bool(pod) and ((self.tracked(pod) and has_ended(pod)) or self._kind.has_ended_in(self._stored, pod))


def _restarts(before: Json | None, after: Json | None) -> tuple[str, ...]:
    """Return the containers that were restarted with the same image."""
    held = statuses_of(before or {})
    return tuple(
        name
        for name, one in statuses_of(after or {}).items()
        if one.get("restartCount", 0) > held.get(name, one).get("restartCount", 0)
        and is_reported_as(str(one.get("image")), str(held[name].get("image")))
    )


def is_serving(pod: Json) -> bool:
    """Report whether the pod is ready and not terminating, finishing, or held back by an in-place update."""
    if "deletionTimestamp" in pod["metadata"] or not is_ready(pod) or is_to_end(pod):
        return False
    conditions = mappings(member(pod, "status").get("conditions"))
    return not any(one.get("type") == IN_PLACE_READY and one.get("status") != "True" for one in conditions)
