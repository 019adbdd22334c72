"""Handles the wanted pods in ascending order: missing, broken or incorrect ones (statefulset.md §4.5).

OrderedReady stops at the first pod that is not available, and so does one thing at a time. Parallel does everything at
once, within scaleStrategy. Only pods that need attention are visited.
"""

from datetime import timedelta
from enum import Enum

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain, Event, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_UPDATE
from flotilla_common.workload.podedit import PodEdit
from flotilla_statefulset.statefulset.claims import pod_not_created
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.create import CREATE, Creator, identity_labels
from flotilla_statefulset.statefulset.deletion import delete_chain, is_held, keep_chain, recreate_chain
from flotilla_statefulset.statefulset.pods import Traits, traits
from flotilla_statefulset.statefulset.rollout import in_place_chain, plan_repair
from flotilla_statefulset.statefulset.status import REPAIR, state_of
from flotilla_statefulset.statefulset.update_rules import (
    is_broken,
    is_due,
    is_left_to_user,
    is_off_revision,
    is_target,
    must_be_recreated,
)

STALE_CLAIM_SECONDS = 5
"""The interval after which a claim that garbage collection should delete is checked again."""


class Flow(Enum):
    """The ways in which the walk continues after a pod."""

    NEXT = "next"
    BREAK = "break"  # no further wanted pods; the rest of the pass goes on
    EXIT = "exit"  # nothing else in this pass


def plan_replicas(context: PlanContext, builder: PlanBuilder) -> bool:
    """Plan what the wanted pods need. Return False if the pass ends here."""
    walk = _Walk(context, builder)
    flow = Flow.NEXT
    for ordinal in sorted({*context.pods.missing, *context.pods.notable}):
        flow = walk.visit(ordinal)
        if flow is not Flow.NEXT:
            break
    walk.stage()
    if walk.broken is not None:
        plan_repair(context, walk.broken, builder)
    return flow is not Flow.EXIT


class _Walk:
    """The state of the walk: how many more pods may be unavailable, and the writes so far."""

    def __init__(self, context: PlanContext, builder: PlanBuilder) -> None:
        self._context = context
        self._builder = builder
        self._left = context.targets.scale_limit
        self._creator = Creator(context, builder)
        self._chains: list[Chain] = []
        self.broken: int | None = None  # the pod that OrderedReady waits for, if an update may repair it

    def visit(self, ordinal: int) -> Flow:
        pod = self._context.pods.by_ordinal.get(ordinal)
        if len(self._chains) >= MAX_CHAINS_PER_PASS:
            return Flow.BREAK
        return self._missing(ordinal) if pod is None else self._there(ordinal, pod, traits(pod))

    def stage(self) -> None:
        """Stage the writes: repairs first; a failure ends the pass."""
        self._builder.stage(self._chains)
        self._creator.stage()

    def _missing(self, ordinal: int) -> Flow:
        context, name = self._context, self._context.pod_name(ordinal)
        if self._creator.full:
            return Flow.BREAK
        if name in context.snapshot.taken_names:
            return self._fail(CREATE, "NameTaken", f'pods "{name}" already exists', "it does not belong to this set")
        factory = self._creator.factory(ordinal)
        if stale := context.claims.stale(ordinal, factory.claims):
            text = f"the claims {named(stale)} are still owned by an earlier pod {name}"
            self._builder.reason(State.WAITING, "WaitingForClaim", text, stale)
            self._builder.deadlines.until(context.now + timedelta(seconds=STALE_CLAIM_SECONDS))
            return Flow.EXIT if context.targets.ordered else Flow.NEXT
        if going := context.claims.terminating(ordinal, factory.claims):
            error = f"pvc {going[0]} is to be deleted"
            self._builder.events.append(pod_not_created(context.statefulset.metadata.name, name, error))
            return self._fail(CREATE, "WaitingForClaim", error, "its claim")
        if not self._creator.add(ordinal, factory):
            return Flow.EXIT
        return self._charge()

    def _there(self, ordinal: int, pod: Pod, kind: Traits) -> Flow:
        if kind.finished:
            return self._replace(pod, kind)
        if kind.phase == "Pending" and not self._recreate_missing_claims(ordinal, pod):
            return Flow.EXIT
        if kind.state == PREPARING_DELETE and not kind.terminating:
            self._settle_deletion(ordinal, pod)
        if kind.state == PREPARING_UPDATE and not kind.terminating:
            self._settle_update(ordinal, pod)
        if ordinal in self._context.pods.unavailable:
            self._builder.deadlines.until(self._context.pods.waiting.get(ordinal))
            if self._context.targets.ordered:
                if is_left_to_user(self._context, ordinal, pod) and pod.metadata.uid not in self._builder.touched:
                    return Flow.NEXT
                self._wait_for(ordinal, pod)
            if (flow := self._charge()) is not Flow.NEXT:
                return flow
        return Flow.NEXT if kind.terminating else self._repair(ordinal, pod, kind)

    def _charge(self) -> Flow:
        """Count one more unavailable pod, and return how the walk continues.

        OrderedReady stops here; Parallel stops once scaleStrategy.maxUnavailable is used up.
        """
        if self._context.targets.ordered:
            return Flow.EXIT
        if self._left is None:
            return Flow.NEXT
        self._left -= 1
        if self._left > 0:
            return Flow.NEXT
        if missing := self._context.pods.missing_count:
            limit = self._context.targets.scale_limit
            text = f"{pods_word(missing)} missing; at most scaleStrategy.maxUnavailable {limit} may be unavailable"
            self._builder.reason(State.WAITING, "ScaleUpLimited", text)
        return Flow.BREAK

    def _replace(self, pod: Pod, kind: Traits) -> Flow:
        """Delete a finished pod, so that a new pod of its name can replace it."""
        name = pod.metadata.name
        if not kind.terminating and self._builder.touch(pod):
            self._chains.append(delete_chain(self._context, pod, Intent.REPLACE, f"the pod is {kind.phase}"))
        self._builder.reason(State.PROGRESSING, "ReplacingPod", f"replacing {name}: it is {kind.phase}", [name])
        return self._charge()

    def _recreate_missing_claims(self, ordinal: int, pod: Pod) -> bool:
        """Create claims again that vanished while a pod waits for them; return False if one is still terminating."""
        claims = self._context.claims
        used = claims.used_by(pod, ordinal)
        if going := claims.terminating(ordinal, used):
            self._fail("claims", "WaitingForClaim", f"pvc {going[0]} is to be deleted", "its claim")
            return False
        self._chains += [(claims.create(template, ordinal),) for template in claims.missing(ordinal, used)]
        return True

    def _settle_deletion(self, ordinal: int, pod: Pod) -> None:
        """Delete a pod in PreparingDelete once its hook releases it, or keep it if its deletion is no longer wanted."""
        due = is_due(self._context, ordinal, pod)
        if due is None or (due and is_held(self._context, pod)):
            self._builder.reason(State.HELD, "WaitingForHook", f"the preDelete hook holds {pod.metadata.name}", [pod])
        elif self._builder.touch(pod):
            self._chains.append(
                delete_chain(self._context, pod, Intent.DELETE, "released by the preDelete hook")
                if due
                else keep_chain(self._context, pod)
            )

    def _settle_update(self, ordinal: int, pod: Pod) -> None:
        """Continue the update of a pod in PreparingUpdate once its hook releases it.

        The pod is out of service already, so maxUnavailable does not delay it, or it would never finish. It
        stops while updates are paused or OnDelete, and if the pod is no target any more.
        """
        context, builder = self._context, self._builder
        if context.targets.paused or context.targets.on_delete or not is_target(context, ordinal, pod):
            return
        if must_be_recreated(context, ordinal, pod):
            chain = recreate_chain(context, pod)
        else:
            chain = in_place_chain(context, pod, builder.deadlines)
        if chain and context.disruptions.try_take_for(pod, chain) and builder.touch(pod):
            self._chains.append(chain)

    def _repair(self, ordinal: int, pod: Pod, kind: Traits) -> Flow:
        """Repair the pod's identity labels and the owner references of its claims (§4.5.2)."""
        context, claims = self._context, self._context.claims
        wrongly_owned = claims.wrongly_owned(ordinal, pod, scaled_away=False)
        patches = [(claims.set_owner(claim, pod, scaled_away=False),) for claim in wrongly_owned]
        self._chains += patches
        if not kind.named and self._builder.touch(pod):
            edit = PodEdit(pod, Intent.UPDATE, "identity of the pod", phase=REPAIR)
            edit.set_labels(identity_labels(context, ordinal))
            action = f"update Pod {pod.metadata.name} in StatefulSet {context.statefulset.metadata.name}"
            self._chains.append(
                edit.chain(
                    on_success=Event("SuccessfulUpdate", f"{action} successful"),
                    on_failure=Event("FailedUpdate", f"{action} failed error: ", warning=True),
                )
            )
        return Flow.NEXT

    def _fail(self, phase: str, code: str, error: str, hint: str) -> Flow:
        """Record an error that is known without asking the apiserver; the pass ends and is retried."""
        self._builder.errors.append((phase, error))
        self._builder.reason(State.STUCK, code, f"{error} ({hint})")
        return Flow.EXIT

    def _wait_for(self, ordinal: int, pod: Pod) -> None:
        """Explain what OrderedReady waits for.

        A broken pod that is not on its desired revision would never become available, so it is marked for repair
        instead.
        """
        context = self._context
        is_wrong = is_target(context, ordinal, pod) or is_off_revision(context, ordinal, pod)
        may_be_repaired = is_wrong and is_broken(context, ordinal, pod) and not context.targets.paused
        if may_be_repaired and context.is_proven(missing=False):
            self.broken = ordinal
            return
        text = f"{state_of(self._context, pod)}; podManagementPolicy OrderedReady continues when it is available"
        self._builder.reason(State.WAITING, "WaitingForPod", text, [pod])
