"""The refresh step: what single pods need, whatever the rollout does (cloneset.md §4.8 step 1).

New pods become Normal, in-place updates go through their grace periods and batches and end, missing labels are filled
in. It runs in every pass, also while paused, on OnDelete and while scaling, or new pods would never become Ready.

A refresh only ever turns an unavailable pod into an available one and never changes its revision. So the update step
may go on in the same pass: it counts refreshed pods as the snapshot shows them, which errs on the safe side, leaves
them their place in the update order, and does not plan them again (docs/adr/0004).
"""

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.moments import later
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS, Draft
from flotilla_common.control.plan import Chain, State
from flotilla_common.control.wording import named
from flotilla_common.workload.inplace import InPlaceContext, Refresh, refresh
from flotilla_common.workload.inplace.refresh import IDLE
from flotilla_common.workload.recipe import belongs, short_hash

_MEMO = "cloneset_refresh_idle"


def plan_refresh(context: PlanContext, draft: Draft, *, direction: int, at: int | None = None) -> None:
    """Plan the refresh of all pods that no other step of this pass writes, as a stage at position `at`, else
    at the end.

    `direction`: where the update step moves pods, 1 to the update revision, -1 back to the current one, 0 nowhere.
    """
    chains: list[Chain] = []
    in_grace: list[Pod] = []
    in_place = context.in_place
    for pod in context.pods.unsettled:
        if pod.metadata.uid in draft.touched:
            continue
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        outcome = _refresh(context, in_place, pod, direction)
        if outcome.chain and draft.touch(pod):
            chains.append(outcome.chain)
        if outcome.wait_seconds:
            in_grace.append(pod)
            draft.waits.until(later(context.now, outcome.wait_seconds))
        if outcome.problem:
            text = f"cannot go on with {pod.metadata.name}: {outcome.problem}"
            draft.reason(State.STUCK, "PodUnreadable", text, [pod], symptom=True)
    draft.stage(chains, stop_on_failure=False, at=at)
    if in_grace:
        text = f"the grace period of {named(in_grace)} has not ended"
        draft.reason(State.WAITING, "WaitingForGracePeriod", text, in_grace)


def _refresh(context: PlanContext, in_place: InPlaceContext, pod: Pod, direction: int) -> Refresh:
    """What the pod needs. That it needs nothing is remembered with the pod, unless time or a problem has to pass."""
    target = context.revisions.current if direction < 0 else context.revisions.update
    on_target = belongs(pod.revision, target.metadata.name)
    wanted = direction != 0 and not on_target
    question = (in_place.lifecycle, on_target, wanted)
    if pod.memo.get(_MEMO) == question:
        return IDLE
    outcome = refresh(
        pod,
        in_place,
        on_target=on_target,
        wanted=wanted,
        backfill={keys.TEMPLATE_HASH_LABEL: short_hash(pod.revision)} if pod.revision else None,
    )
    if outcome == IDLE:
        pod.memo[_MEMO] = question
    return outcome
