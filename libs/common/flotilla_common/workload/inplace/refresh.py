"""The refresh step of a pass: updates of single pods that do not depend on the rollout (common.md §9.6, §8.4).

New pods get their readiness conditions, in-place updates go through their grace periods and batches and end, hooks are
answered. It runs in every pass and for every pod, also while paused, on OnDelete and while scaling, or new pods would
never become Ready. Most pods need nothing most of the time, which `is_settled` reports from a cache. A new pod gets its
conditions and its state Normal in one write, once it has a node; a pod at the end of an in-place update likewise, but
only on exactly the version that was seen to be complete, because a newer one may already be in the next update.

A refresh only ever makes an unavailable pod available and never changes its revision. So the other steps may continue
in the same pass: they see refreshed pods as in the snapshot, which errs on the safe side, and do not write them again
(docs/adr/0004).
"""

import math
from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_GRACE, IN_PLACE_READY, LEGACY_IN_PLACE_GRACE
from flotilla_common.api.meta import Condition, later
from flotilla_common.control.plan import Chain, Frozen, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named
from flotilla_common.workload.inplace.batches import write_batch
from flotilla_common.workload.inplace.completion import completed, containers_completed
from flotilla_common.workload.inplace.state import Grace, InPlaceState, grace_of, state_of_update
from flotilla_common.workload.inplace.update import InPlaceContext, half_started
from flotilla_common.workload.lifecycle import (
    NORMAL,
    PREPARING_NORMAL,
    PREPARING_UPDATE,
    UPDATED,
    UPDATING,
    fully_hooked,
    write_state,
)
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.predicates import is_settled
from flotilla_common.workload.readiness import distrust_ready, ensure_pod_ready

_MEMO = "refresh_idle"


class Refresh(Frozen):
    """The outcome for one pod."""

    chain: Chain = ()
    wait_seconds: int = 0  # plan again after this many seconds; 0: not needed
    problem: str = ""  # the content of the pod that cannot be decoded; the pod is left alone


IDLE = Refresh()


def refresh(
    pod: Pod,
    context: InPlaceContext,
    *,
    on_target: bool,
    wanted: bool,
    backfill: Mapping[str, str] | None = None,
) -> Refresh:
    """Plan the next step of one active pod.

    `on_target`: its revision label is the update revision's. `wanted`: it waits for an update, so a half-started one is
    not undone. `backfill`: labels to add where missing.
    """
    missing = {key: value for key, value in (backfill or {}).items() if key not in pod.metadata.labels}
    if is_settled(pod) and not missing:
        return IDLE
    try:
        grace, state = grace_of(pod), state_of_update(pod)
        if grace is not None:
            return _finish_grace(pod, grace, state, context)
    except ValueError as error:
        return Refresh(problem=str(error))
    if state is not None and state.has_next:
        chain = _next_batch(pod, state, context)
        if chain:
            return Refresh(chain=chain)
    return _edit(pod, state, context, missing, on_target=on_target, wanted=wanted)


def _finish_grace(pod: Pod, grace: Grace, state: InPlaceState | None, context: InPlaceContext) -> Refresh:
    """Continue waiting for the end of a grace period, start its update, or drop it."""
    if not context.codec.belongs(pod.revision, grace.revision):
        edit = PodEdit(pod, Intent.REFRESH, f"the in-place update to {grace.revision} is no longer wanted")
        edit.set_annotations({IN_PLACE_GRACE: None, LEGACY_IN_PLACE_GRACE: None})
        edit.on_this_version()
        return Refresh(chain=edit.chain())
    if state is None:
        return Refresh(problem=f"pod {pod.metadata.name}: in a grace period, but without the state of an update")
    rest = (later(state.update_timestamp, grace.grace_seconds) - context.now).total_seconds()
    if rest > 0:
        return Refresh(wait_seconds=math.ceil(rest))
    revision = context.revision_name(grace.revision)
    edit = PodEdit(pod, grace.spec.intent, f"in-place update to {revision}", revision=revision)
    chain = write_batch(edit, grace.spec, state, server_version=context.server_version, now=context.now)
    return Refresh(chain=chain)


def _next_batch(pod: Pod, state: InPlaceState, context: InPlaceContext) -> Chain:
    """Return the writes of the next batch, if the last one is complete and ready."""
    required = state.pre_check_before_next.containers_required_ready if state.pre_check_before_next else []
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    if not ready.issuperset(required) or not containers_completed(pod, state, context.gates):
        return ()
    spec, revision = state.next_spec, context.revision_name(state.revision)
    edit = PodEdit(pod, spec.intent, f"next batch of the in-place update to {revision}", revision=revision)
    return write_batch(edit, spec, state, server_version=context.server_version, now=context.now)


def _edit(
    pod: Pod,
    state: InPlaceState | None,
    context: InPlaceContext,
    missing: Mapping[str, str],
    *,
    on_target: bool,
    wanted: bool,
) -> Refresh:
    """Return the write of labels, lifecycle state and conditions."""
    edit = PodEdit(pod, Intent.REFRESH, "refresh")
    edit.set_labels(missing)
    target = _next_state(pod, context, on_target=on_target)
    if target:
        write_state(edit, target, context.lifecycle, context.now)
        if pod.state != PREPARING_NORMAL:
            edit.on_this_version()
    if pod.spec.node_name or edit.changed:
        ensure_pod_ready(edit, context.now)
        _open_gate(edit, state, context, wanted=wanted)
    return Refresh(chain=edit.chain())


def _next_state(pod: Pod, context: InPlaceContext, *, on_target: bool) -> str:
    """Return the lifecycle state that the pod moves to by itself; empty if it stays (§8.4)."""
    lifecycle = context.lifecycle
    hook = lifecycle.in_place_update if lifecycle else None
    if pod.state == PREPARING_NORMAL:
        pre_normal = lifecycle.pre_normal if lifecycle else None
        reached = fully_hooked(pre_normal, pod) if pre_normal else bool(pod.spec.node_name)
        return NORMAL if reached else ""
    after_update = UPDATED if lifecycle is not None and not fully_hooked(hook, pod) else NORMAL
    if pod.state == PREPARING_UPDATE and on_target:
        return after_update
    if pod.state == UPDATING and completed(pod, context.gates):
        return after_update
    if pod.state == UPDATED and (hook is None or fully_hooked(hook, pod)):
        return NORMAL
    return ""


def _open_gate(edit: PodEdit, state: InPlaceState | None, context: InPlaceContext, *, wanted: bool) -> None:
    """Set InPlaceUpdateReady to True, unless an update is in progress or half started."""
    pod = edit.pod
    condition = pod.conditions.get(IN_PLACE_READY)
    if IN_PLACE_READY not in pod.gates or (
        condition and (condition.status, condition.reason, condition.message) == ("True", "", "")
    ):
        return
    if state is not None and not completed(pod, context.gates):
        return
    if half_started(pod):
        if wanted and pod.state != UPDATING:
            return
        edit.on_this_version()
    if state is not None:
        edit.on_this_version()
    edit.set_condition(Condition(type=IN_PLACE_READY, status="True", last_transition_time=context.now))
    if condition and condition.status == "False" and pod.ready:
        distrust_ready(edit, context.now)


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, and the arguments of its `refresh`."""

    pod: Pod
    context: InPlaceContext
    on_target: bool
    wanted: bool = False
    backfill: Mapping[str, str] | None = None


def stage_refreshes(builder: PlanBuilder, pods: Iterable[Due], *, at: int | None) -> None:
    """Plan the refresh of pods that no other step of this pass writes, as a stage at position `at` or at the end."""
    chains: list[Chain] = []
    in_grace: list[Pod] = []
    for due in pods:
        pod = due.pod
        if pod.metadata.uid in builder.touched:
            continue
        if len(chains) >= MAX_CHAINS_PER_PASS:
            break
        outcome = _refresh(due)
        if outcome.chain and builder.touch(pod):
            chains.append(outcome.chain)
        if outcome.wait_seconds:
            in_grace.append(pod)
            builder.deadlines.until(later(due.context.now, outcome.wait_seconds))
        if outcome.problem:
            text = f"cannot continue with {pod.metadata.name}: {outcome.problem}"
            builder.reason(State.STUCK, "PodUnreadable", text, [pod], symptom=True)
    # No other step writes these pods, so a step that creates or updates many does not wait for them, nor they for it.
    builder.stage(chains, stop_on_failure=False, beside_next=True, at=at)
    if in_grace:
        text = f"the grace period of {named(in_grace)} has not ended"
        builder.reason(State.WAITING, "WaitingForGracePeriod", text, in_grace)


def _refresh(due: Due) -> Refresh:
    """Return the outcome for the pod; IDLE is cached with the pod, unless time or a problem has to pass."""
    question = (due.context.lifecycle, due.on_target, due.wanted)
    if due.pod.memo.get(_MEMO) == question:
        return IDLE
    outcome = refresh(due.pod, due.context, on_target=due.on_target, wanted=due.wanted, backfill=due.backfill)
    if outcome == IDLE:
        due.pod.memo[_MEMO] = question
    return outcome
