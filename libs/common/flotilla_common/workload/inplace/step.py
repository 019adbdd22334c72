"""The refresh step of a pass: what single pods need, whatever the rollout does.

New pods get their readiness conditions, updates in place go through their grace periods and batches and end, hooks are
answered. It runs in every pass and for every pod, also while paused, on OnDelete and while scaling, or new pods would
never become Ready.

A refresh only ever turns an unavailable pod into an available one and never changes its revision. So the other steps
may go on in the same pass: they see refreshed pods as the snapshot shows them, which errs on the safe side, and do not
write them again (docs/adr/0004).
"""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.moments import later
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS, Draft
from flotilla_common.control.plan import Chain, State
from flotilla_common.control.wording import named
from flotilla_common.workload.inplace.context import InPlaceContext
from flotilla_common.workload.inplace.refresh import IDLE, Refresh, refresh

_MEMO = "refresh_idle"


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, and what `refresh` has to know of it."""

    pod: Pod
    context: InPlaceContext
    on_target: bool
    wanted: bool = False
    backfill: Mapping[str, str] | None = None


def stage_refreshes(draft: Draft, pods: Iterable[Due], *, at: int | None) -> None:
    """Plan the refresh of those pods that no other step of this pass writes, as a stage at position `at`, or at the
    end."""
    chains: list[Chain] = []
    in_grace: list[Pod] = []
    for due in pods:
        pod = due.pod
        if pod.metadata.uid in draft.touched:
            continue
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        outcome = _refresh(due)
        if outcome.chain and draft.touch(pod):
            chains.append(outcome.chain)
        if outcome.wait_seconds:
            in_grace.append(pod)
            draft.waits.until(later(due.context.now, outcome.wait_seconds))
        if outcome.problem:
            text = f"cannot go on with {pod.metadata.name}: {outcome.problem}"
            draft.reason(State.STUCK, "PodUnreadable", text, [pod], symptom=True)
    draft.stage(chains, stop_on_failure=False, at=at)
    if in_grace:
        text = f"the grace period of {named(in_grace)} has not ended"
        draft.reason(State.WAITING, "WaitingForGracePeriod", text, in_grace)


def _refresh(due: Due) -> Refresh:
    """Return what the pod needs. That it needs nothing is remembered with the pod, unless time or a problem has to
    pass."""
    question = (due.context.lifecycle, due.on_target, due.wanted)
    if due.pod.memo.get(_MEMO) == question:
        return IDLE
    outcome = refresh(due.pod, due.context, on_target=due.on_target, wanted=due.wanted, backfill=due.backfill)
    if outcome == IDLE:
        due.pod.memo[_MEMO] = question
    return outcome
