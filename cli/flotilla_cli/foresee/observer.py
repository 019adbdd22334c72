"""Watches the imagined pods: which become ready or go between two moments, and how few serve at the worst one."""

from collections.abc import Callable

from flotilla_cli.imagined.objects import Objects
from flotilla_cli.imagined.pods import is_ready
from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.resources import POD, Resource


class Observer:
    """Looks at the pods of which `tracked` is true."""

    def __init__(self, objects: Objects, tracked: Callable[[Json], bool]) -> None:
        self._tracked = tracked
        self._serving = {pod["metadata"]["uid"] for pod in objects.all(POD) if tracked(pod) and is_serving(pod)}
        self.before = self.lowest = len(self._serving)
        self._news: list[tuple[str, Json]] = []
        objects.listen(self._see)

    @property
    def serving(self) -> int:
        """How many serve now."""
        return len(self._serving)

    def news(self) -> list[tuple[str, Json]]:
        """What happened since the last question: (ready or gone, the pod)."""
        news, self._news = self._news, []
        return news

    def _see(self, resource: Resource, before: Json | None, after: Json | None) -> None:
        pod = after or before
        if resource != POD or pod is None or not self._tracked(pod):
            return
        uid = pod["metadata"]["uid"]
        if after is None:
            self._news.append(("gone", pod))
        if after is not None and is_serving(after):
            if uid not in self._serving:
                self._news.append(("ready", pod))
            self._serving.add(uid)
        else:
            self._serving.discard(uid)
            self.lowest = min(self.lowest, len(self._serving))


def is_serving(pod: Json) -> bool:
    """Ready, not on its way out, and not held back by an update in place."""
    if "deletionTimestamp" in pod["metadata"] or not is_ready(pod):
        return False
    conditions = mappings(member(pod, "status").get("conditions"))
    return not any(one.get("type") == IN_PLACE_READY and one.get("status") != "True" for one in conditions)
