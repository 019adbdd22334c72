"""From a snapshot of one PersistentPodState to what is done about it: first what its workload's annotations ask for,
then the records (persistentpodstate.md §4, §5)."""

from datetime import datetime

from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    PersistentPodState,
    PersistentPodStateStatus,
    PodState,
)
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Plan
from flotilla_common.control.wording import named, pods_word
from flotilla_common.control.writes import status_patch
from flotilla_common.workload.causes import Around, explain_pods
from flotilla_statefulset.persistentpodstate.generate import generate
from flotilla_statefulset.persistentpodstate.records import KEEPS_ALL, Records, records, topology_keys
from flotilla_statefulset.persistentpodstate.snapshot import StateSnapshot
from flotilla_statefulset.persistentpodstate.workloads import called


def plan(snapshot: StateSnapshot, now: datetime) -> Plan:
    """The next step of one PersistentPodState."""
    draft, state = Draft(), snapshot.state
    if state is not None and state.metadata.deletion_timestamp is not None:
        draft.reason("Deleting", "it is being deleted; nothing is recorded any more")
        return draft.plan()
    if generate(snapshot, draft) or state is None:
        return draft.plan()
    remembered = _remembered(snapshot, state, now, draft)
    if remembered is None:
        return draft.plan()
    status = PersistentPodStateStatus(observed_generation=state.metadata.generation, pod_states=remembered)
    return draft.plan(
        # What the apiserver said of a workload was said since this version of the object.
        status=status_patch(PERSISTENT_POD_STATE, state.metadata, state.status, status, on_version=True),
        urgent_status=state.status.observed_generation != state.metadata.generation,
        numbers={"recorded": len(remembered)},
    )


def _remembered(
    snapshot: StateSnapshot, state: PersistentPodState, now: datetime, draft: Draft
) -> dict[str, PodState] | None:
    """The records as they must be; None while that cannot be said."""
    held, what = state.status.pod_states, called(state.spec.target_ref)
    if snapshot.unfollowed:
        draft.reason("TargetNotFollowed", f"the records stay as they are: {snapshot.unfollowed}")
        return None
    if snapshot.target is None:
        if held and (snapshot.said is None or snapshot.said.found is not None):
            draft.reason("ReadingTarget", f"the records stay as they are: asking whether {what} is gone")
            return None
        draft.reason("TargetMissing", f"{what} does not exist; nothing is recorded")
        return {}
    if snapshot.target.terminating:
        draft.reason("TargetTerminating", f"{what} is being deleted; nothing is recorded any more")
        return {}
    found = records(snapshot, held, state.spec)
    _explain(snapshot, state, found, now, draft)
    return found.states


def _explain(snapshot: StateSnapshot, state: PersistentPodState, found: Records, now: datetime, draft: Draft) -> None:
    if found.states:
        names = sorted(found.states)
        draft.reason("Recorded", f"{pods_word(len(names))} recorded: {named(names)}", names)
    if dropped := sorted(state.status.pod_states.keys() - found.states.keys()):
        draft.reason("Dropped", f"records of pods that are no longer wanted go: {named(dropped)}", dropped)
    if found.not_ready:
        draft.reason("WaitingForReady", f"no record until they are ready: {named(found.not_ready)}", found.not_ready)
        explain_pods(draft, (pod for pod in snapshot.pods if pod.metadata.name in found.not_ready), Around(now=now))
    for pod, node in sorted(found.unknown_nodes.items())[:1]:
        others = named(sorted(found.unknown_nodes))
        draft.reason("NodeUnknown", f"not recorded anew: {others}; {pod} runs on node {node}, which is not there")
    if found.unlabelled:
        keys, pods = ", ".join(topology_keys(state.spec)), named(found.unlabelled)
        draft.reason("LabelsMissing", f"not bound to a place: {pods}; their nodes have no label {keys}")
    if state.spec.persistent_pod_state_retention_policy == KEEPS_ALL:
        draft.reason("KeptWhenScaled", "records of pods that are scaled away stay until the workload is deleted")
