"""Launch order: no container starts before all with a higher priority have been ready (container-extras.md §B3).

No key of a barrier is removed while its pod exists.
"""

from collections.abc import Iterator

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.predicates import launch_priority
from tests.simulation.history import Version
from tests.simulation.oracles.view import Commit, View

BARRIER = "-barrier"
"""The suffix of the names of barriers, the ConfigMaps whose keys containers wait for."""


class LaunchOrder:
    """The rule for launch order: the containers that have been ready, by uid of the pod."""

    def __init__(self) -> None:
        self._ready: dict[str, set[str]] = {}  # those that have been ready
        self._created: dict[str, set[str]] = {}  # those that have been created

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        if commit.version.resource == POD and commit.pod is not None:
            yield from self._starts(commit.pod)
        elif commit.version.resource == CONFIG_MAP and commit.version.name.endswith(BARRIER) and commit.ours:
            yield from _keeps_keys(commit.version)

    def _starts(self, pod: Pod) -> Iterator[str]:
        uid = pod.metadata.uid
        ready, created = self._ready.setdefault(uid, set()), self._created.setdefault(uid, set())
        ranks = {one.name: rank for one in pod.spec.containers if (rank := launch_priority(one)) is not None}
        for status in pod.status.container_statuses:
            if status.container_id and status.name in ranks and status.name not in created:
                first = sorted(name for name, rank in ranks.items() if rank > ranks[status.name] and name not in ready)
                if first:
                    yield f"{status.name} starts before {', '.join(first)} has been ready"
        created.update(status.name for status in pod.status.container_statuses if status.container_id)
        ready.update(status.name for status in pod.status.container_statuses if status.ready)


def _keeps_keys(version: Version) -> Iterator[str]:
    """Check that no key of a barrier is lost. A new barrier has none."""
    before, after = version.before or {}, version.after or {}
    taken = sorted(before.get("data", {}).keys() - after.get("data", {}).keys())
    if taken and _owners(before) == _owners(after):
        yield f"takes {', '.join(taken)} away"


def _owners(document: Json) -> list[str]:
    return [owner["uid"] for owner in document.get("metadata", {}).get("ownerReferences", [])]
