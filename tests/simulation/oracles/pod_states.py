"""PersistentPodStates: the records that we must keep, and the objects (persistentpodstate.md §4, §5)."""

import math
from collections.abc import Iterator

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.control.plan import Json
from tests.simulation.history import Version
from tests.simulation.oracles.view import Commit, View, Workload

AUTO = "kruise.io/auto-generate-persistent-pod-state"


class PodStates:
    """The rule for PersistentPodStates: the states of StatefulSets over time."""

    def __init__(self) -> None:
        self._made: dict[str, float] = {}  # by uid: when the set was made
        self._silent: dict[str, float] = {}  # by uid: when it was last seen not to ask for a PersistentPodState

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == STATEFUL_SET:
            self._see(version)
        elif version.resource == PERSISTENT_POD_STATE and commit.ours:
            if commit.marked_deleted and self._is_asked_for(view, version):
                yield "deletes it, though its workload does not ask for that"
            elif version.after is not None:
                yield from self._wanted_ones_stay(view, version)

    def _see(self, version: Version) -> None:
        self._made.setdefault(version.uid, version.at)
        if version.before is not None and not _asks(version.before):
            self._silent[version.uid] = version.at
        if version.after is not None and not _asks(version.after):
            self._silent[version.uid] = math.inf

    def _is_asked_for(self, view: View, version: Version) -> bool:
        """Report whether the object must exist: one without owner is the users'; ours goes with the request."""
        owners: list[Json] = (version.before or {})["metadata"].get("ownerReferences", [])
        uids = [str(owner["uid"]) for owner in owners if owner.get("controller")]
        return not uids or self._silent.get(uids[0], -math.inf) < view.since

    def _wanted_ones_stay(self, view: View, version: Version) -> Iterator[str]:
        dropped = _states(version.before).keys() - _states(version.after).keys()
        for workload in view.workloads.values() if dropped else ():
            if self._is_settled(view, workload) and _targets(version, workload):
                lately = workload.recent_numbered(view.since)
                for pod in sorted(dropped):
                    if all(one.of(pod) in one.ordinals for one in lately):
                        yield f"drops the record of {pod}, which {workload.name} wants"

    def _is_settled(self, view: View, workload: Workload) -> bool:
        """Report whether the set exists, and has done so for longer than the visibility lag."""
        return workload.ended is None and self._made.get(workload.uid, math.inf) < view.since


def _asks(document: Json) -> bool:
    return document["metadata"].get("annotations", {}).get(AUTO) == "true"


def _states(document: Json | None) -> Json:
    return (document or {}).get("status", {}).get("podStates", {})


def _targets(version: Version, workload: Workload) -> bool:
    target: Json = (version.after or {})["spec"]["targetRef"]
    found = (version.namespace, target["apiVersion"].partition("/")[0], target["kind"], target["name"])
    return found == (workload.namespace, workload.resource.group, workload.resource.kind, workload.name)
