"""The refresh step: what single pods need, whatever the rollout does (daemonset.md §4.3 step 8).

New pods get their readiness conditions, updates in place go through their batches and end. It runs in every pass and
for every pod. A refresh only ever turns an unavailable pod into an available one and never changes its revision, so
the other steps may go on in the same pass: they see refreshed pods as the snapshot shows them (docs/adr/0004).
"""

from flotilla_common.api.core import Pod
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS, Draft
from flotilla_common.control.plan import Chain, State
from flotilla_common.workload.inplace import refresh
from flotilla_common.workload.inplace.refresh import IDLE
from flotilla_common.workload.predicates import is_settled
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pods import is_terminating

_MEMO = "daemonset_refresh_idle"
FINISHED = ("Failed", "Succeeded")


def plan_refresh(context: PlanContext, draft: Draft, *, at: int) -> None:
    """Plan the refresh of all pods that no other step of this pass writes, as a stage at position `at`."""
    chains: list[Chain] = []
    for pod in context.members.own:
        if is_settled(pod) or is_terminating(pod) or pod.status.phase in FINISHED:
            continue
        if pod.metadata.uid in draft.touched or pod.memo.get(_MEMO) is not None:
            continue
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        chain = _refresh(context, pod, draft)
        if chain and draft.touch(pod):
            chains.append(chain)
    draft.stage(chains, stop_on_failure=False, at=at)


def _refresh(context: PlanContext, pod: Pod, draft: Draft) -> Chain:
    """What the pod needs. That it needs nothing is remembered with the pod, unless a problem has to pass."""
    outcome = refresh(pod, context.in_place, on_target=context.criteria.is_updated(pod), wanted=False)
    if outcome == IDLE:
        pod.memo[_MEMO] = True
    if outcome.problem:
        text = f"cannot go on with {pod.metadata.name}: {outcome.problem}"
        draft.reason(State.STUCK, "PodUnreadable", text, [pod], symptom=True)
    return outcome.chain
