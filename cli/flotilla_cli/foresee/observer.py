"""Watches the played cluster: which pods become ready, go, or get containers restarted between two moments, which
nodes have pulled, and how few pods serve at the worst moment."""

from typing import NamedTuple

from flotilla_cli.views.kindview import KindView
from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.images import is_reported_as
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import POD, Resource
from flotilla_common.model.containers import statuses_of
from flotilla_common.model.kubelet import has_ended, is_ready
from flotilla_common.model.pods import is_to_end
from flotilla_common.model.store import Objects

READY, GONE, RESTARTED, ANSWERED, ENDED = "ready", "gone", "restarted", "answered", "ended"


class News(NamedTuple):
    """What happened to a pod, or to a NodeImage that the node's agent has answered; for RESTARTED the containers that
    run anew, with the same image."""

    what: str
    object: Json
    containers: tuple[str, ...] = ()


class Observer:
    """Looks at the pods that an object of the kind is about."""

    def __init__(self, objects: Objects, kind: KindView, stored: Json) -> None:
        self._objects = objects
        self._kind = kind
        self._stored = stored
        self._uid = stored["metadata"].get("uid")
        self._of_children: set[str] = set()  # uids of pods of children, which may go before their pods
        self._serving = {pod["metadata"]["uid"] for pod in objects.all(POD) if self.tracked(pod) and is_serving(pod)}
        self.before = self.lowest = len(self._serving)
        self.made = self.gone = 0
        self._news: list[News] = []
        objects.listen(self._see)

    @property
    def serving(self) -> int:
        """How many serve now."""
        return len(self._serving)

    def tracked(self, pod: Json) -> bool:
        """Return whether the object, or a child of it, is about the pod."""
        if self._kind.concerns(self._stored, pod):
            return True
        uid = pod["metadata"]["uid"]
        if self._kind.children and uid not in self._of_children and self._descends(pod, set()):
            self._of_children.add(uid)
        return uid in self._of_children

    def _descends(self, document: Json, seen: set[str]) -> bool:
        """Return whether the object owns this one, directly or through others. `seen`: the uids on the way there, as
        users may write owners in a circle."""
        metadata = document["metadata"]
        seen.add(metadata["uid"])
        for reference in mappings(metadata.get("ownerReferences")):
            found = self._objects.referred(reference, metadata.get("namespace", ""))
            if found is None or (uid := found[1]["metadata"]["uid"]) in seen:
                continue
            if uid == self._uid or self._descends(found[1], seen):
                return True
        return False

    def news(self) -> list[News]:
        """What happened since the last question."""
        news, self._news = self._news, []
        return news

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        pod = after or before
        if resource == NODE_IMAGE and after is not None and before is not None:
            self._news += [News(ANSWERED, after)] if after.get("status") != before.get("status") else []
        if resource == POD and after is not None and self._is_over(after) and not self._is_over(before or {}):
            self._news.append(News(ENDED, after))
        if resource != POD or pod is None or not self.tracked(pod):
            return
        self.made += before is None
        self.gone += after is None
        uid = pod["metadata"]["uid"]
        if restarts := _restarts(before, after):
            self._news.append(News(RESTARTED, pod, restarts))
        if after is None:
            self._news.append(News(GONE, pod))
        if after is not None and is_serving(after):
            if uid not in self._serving:
                self._news.append(News(READY, pod))
            self._serving.add(uid)
        else:
            self._serving.discard(uid)
            self.lowest = min(self.lowest, len(self._serving))

    def _is_over(self, pod: Json) -> bool:
        return bool(pod) and ((self.tracked(pod) and has_ended(pod)) or self._kind.has_ended_in(self._stored, pod))


def _restarts(before: Json | None, after: Json | None) -> tuple[str, ...]:
    """The containers that were started again with the image that they had."""
    held = statuses_of(before or {})
    return tuple(
        name
        for name, one in statuses_of(after or {}).items()
        if one.get("restartCount", 0) > held.get(name, one).get("restartCount", 0)
        and is_reported_as(str(one.get("image")), str(held[name].get("image")))
    )


def is_serving(pod: Json) -> bool:
    """Ready, not on its way out, not held back by an update in place; pods that are to end serve nobody."""
    if "deletionTimestamp" in pod["metadata"] or not is_ready(pod) or is_to_end(pod):
        return False
    conditions = mappings(member(pod, "status").get("conditions"))
    return not any(one.get("type") == IN_PLACE_READY and one.get("status") != "True" for one in conditions)
