"""Containers that start in order: none before all with a higher priority have been ready, and no key that is there is
taken away from the pod that it was made for (container-extras.md §B3)."""

from collections.abc import Iterator

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.launch import launch_priority
from tests.simulation.history import Version
from tests.simulation.oracles.view import Commit, View

BARRIER = "-barrier"
"""How the names of ConfigMaps end whose keys containers wait for."""


class LaunchOrder:
    """What containers have done so far, by the uids of their pods."""

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
    """Of a barrier that is made there are none before."""
    before, after = version.before or {}, version.after or {}
    taken = sorted(before.get("data", {}).keys() - after.get("data", {}).keys())
    if taken and _owners(before) == _owners(after):
        yield f"takes {', '.join(taken)} away"


def _owners(document: Json) -> list[str]:
    return [owner["uid"] for owner in document.get("metadata", {}).get("ownerReferences", [])]
