"""The refresh step: carry every pod's own business on, whatever the rollout does (cloneset.md §4.8 step 1).

New pods become Normal, in-place updates go through their grace periods and batches and end, missing labels are filled
in. It runs in every pass, also while paused, on OnDelete and while scaling, or new pods would never become Ready.

A refresh only ever turns an unavailable pod into an available one and never changes its revision. So the update step
may go on in the same pass: it counts refreshed pods as the snapshot shows them, which errs on the safe side, leaves
them their place in the update order, and does not plan them again (docs/adr/0004).
"""

from datetime import timedelta

from flotilla_cloneset.cloneset.draft import MAX_CHAINS_PER_PASS, Draft, named
from flotilla_cloneset.cloneset.situation import Situation
from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain
from flotilla_common.workload.inplace import refresh
from flotilla_common.workload.lifecycle import PREPARING_NORMAL
from flotilla_common.workload.revisions import belongs, short_hash

_MEMO = "cloneset_refresh_idle"


def plan_refresh(here: Situation, draft: Draft, *, at: int) -> None:
    """Plan the refresh of all pods that no other step of this pass writes, as a stage at position `at`."""
    chains: list[Chain] = []
    waiting: list[Pod] = []
    for pod in here.census.unsettled:
        if pod.metadata.uid in draft.touched:
            continue
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        if not pod.spec.node_name and pod.state == PREPARING_NORMAL:
            waiting.append(pod)
        chain = _refresh(here, pod, draft)
        if chain and draft.touch(pod):
            chains.append(chain)
    draft.stage(chains, stop_on_failure=False, at=at)
    if waiting:
        draft.reason("WaitingForScheduling", f"waiting for nodes: {named(waiting)}", waiting)


def _refresh(here: Situation, pod: Pod, draft: Draft) -> Chain:
    """The pod's writes. That there are none is remembered with the pod, unless only time has to pass."""
    snapshot = here.snapshot
    on_target = belongs(pod.revision, here.revisions.update.metadata.name)
    question = (snapshot.cloneset.spec.lifecycle, on_target)
    if pod.memo.get(_MEMO) == question:
        return ()
    outcome = refresh(
        pod,
        lifecycle=snapshot.cloneset.spec.lifecycle,
        on_target=on_target,
        wanted=not on_target,
        gates=snapshot.gates,
        server_version=snapshot.options.server_version,
        now=here.now,
        backfill={keys.TEMPLATE_HASH_LABEL: short_hash(pod.revision)} if pod.revision else None,
    )
    if outcome.wait_seconds:
        draft.wake(here.now + timedelta(seconds=outcome.wait_seconds))
        draft.reason("WaitingForGracePeriod", f"waiting: the grace period of {pod.metadata.name} has not ended", [pod])
    elif not outcome.chain:
        pod.memo[_MEMO] = question
    return outcome.chain
