"""The refresh step: what single pods need, whatever the rollout does (statefulset.md §4.11).

New pods get their readiness conditions, in-place updates go through their grace periods and batches and end, hooks
are answered. It runs in every pass and for every pod, also behind one that OrderedReady waits for, and while paused.

A refresh only ever turns an unavailable pod into an available one and never changes its revision. So the other steps
may go on in the same pass: they see refreshed pods as the snapshot shows them, which errs on the safe side, and do not
write them again (docs/adr/0004). An update that has half begun and does not go on in this pass is undone: behind a pod
that OrderedReady waits for, nobody would ever finish it.
"""

from flotilla_common.api.core import Pod
from flotilla_common.api.moments import later
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS, Draft
from flotilla_common.control.plan import Chain, State
from flotilla_common.control.wording import named
from flotilla_common.workload.inplace import Refresh, refresh
from flotilla_common.workload.inplace.refresh import IDLE
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.due import may_be_updated

_MEMO = "statefulset_refresh_idle"


def plan_refresh(context: PlanContext, draft: Draft, *, at: int) -> None:
    """Plan the refresh of all pods that no other step of this pass writes, as a stage at position `at`."""
    chains: list[Chain] = []
    in_grace: list[Pod] = []
    idle: list[Pod] = []
    for ordinal in context.pods.unsettled:
        pod = context.pods.by_ordinal[ordinal]
        if pod.metadata.uid in draft.touched:
            continue
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        outcome = _refresh(context, ordinal, pod)
        if outcome.chain and draft.touch(pod):
            chains.append(outcome.chain)
        else:
            idle.append(pod)
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


def _refresh(context: PlanContext, ordinal: int, pod: Pod) -> Refresh:
    """What the pod needs. That it needs nothing is remembered with the pod, unless time or a problem has to pass."""
    on_target = pod.revision == context.update_name or not may_be_updated(context, ordinal, pod)
    question = (context.statefulset.spec.lifecycle, on_target)
    if pod.memo.get(_MEMO) == question:
        return IDLE
    outcome = refresh(pod, context.in_place(pod), on_target=on_target, wanted=False)
    if outcome == IDLE:
        pod.memo[_MEMO] = question
    return outcome
