"""Plans the update phase: first pods specified for deletion, then pods to be updated (statefulset.md §4.8).

Both draw on one budget: at most maxUnavailable of the wanted pods may be unavailable. Broken pods cost nothing, at any
ordinal, and are updated even when the budget is used up (`Spare`).
"""

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.control.plan import Chain, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, Deadlines, PlanBuilder
from flotilla_common.control.text import named, pods_word
from flotilla_common.workload.inplace import UpdateRefused, update_in_place
from flotilla_common.workload.inplace.calculate import hindrances_between
from flotilla_common.workload.inplace.state import in_grace
from flotilla_common.workload.lifecycle import PREPARING_DELETE, PREPARING_UPDATE
from flotilla_common.workload.ordering import sort_by_priority
from flotilla_statefulset.statefulset.context import PlanContext, Spare
from flotilla_statefulset.statefulset.deletion import delete_chain, is_held, recreate_chain
from flotilla_statefulset.statefulset.pods import traits
from flotilla_statefulset.statefulset.revisions import CODEC, in_place_spec
from flotilla_statefulset.statefulset.status import state_of
from flotilla_statefulset.statefulset.update_rules import is_broken, is_off_revision, must_be_recreated
from flotilla_statefulset.statefulset.volume_expansion import RESIZE, ResizeRefused, VolumeExpansion


def plan_update(context: PlanContext, builder: PlanBuilder) -> None:
    """Plan the update phase."""
    if context.targets.on_delete or context.targets.paused:
        return
    walk = _Update(context, builder)
    walk.delete_specified()
    walk.update()
    walk.stage()


def plan_repair(context: PlanContext, ordinal: int, builder: PlanBuilder) -> None:
    """Bring the broken pod that OrderedReady waits for to its desired revision."""
    walk = _Update(context, builder)
    walk.repair(ordinal)
    walk.stage()


def targets_of(context: PlanContext, expansion: VolumeExpansion) -> list[int]:
    """Return, in update order, the ordinals that are outdated or whose claims have to grow (§4.8 step 7)."""
    targets = context.targets
    if targets.unordered_update:
        return _unordered(context, expansion)
    ordinals = sorted({*context.pods.outdated, *expansion.incompatible}, reverse=True)
    return [ordinal for ordinal in ordinals if targets.ordinals.rank(ordinal) >= targets.partition]


def _unordered(context: PlanContext, expansion: VolumeExpansion) -> list[int]:
    """Return the ordinals of an unordered update by priority. Pods already updating or terminating use up places."""
    pods, targets = context.pods, context.targets
    preparing_is_new = context.snapshot.gates.on("PreparingUpdateAsUpdate")

    def is_done(ordinal: int) -> bool:
        kind = traits(pods.by_ordinal[ordinal])
        return kind.terminating or (preparing_is_new and kind.state == PREPARING_UPDATE)

    waiting = [ordinal for ordinal in pods.outdated if not is_done(ordinal)]
    done = targets.replicas - len(waiting) - _missing_old(context)
    unordered = context.rolling.unordered_update
    strategy = unordered.priority_strategy if unordered else None
    numbers = {pods.by_ordinal[ordinal].metadata.uid: ordinal for ordinal in waiting}
    if strategy is None:  # the order is free, so broken pods come first
        waiting.sort(key=lambda ordinal: not is_broken(context, ordinal, pods.by_ordinal[ordinal]))
    ordered = sort_by_priority([pods.by_ordinal[ordinal] for ordinal in waiting], strategy)
    places = max(targets.expected_updated - done, 0)
    preparing = [one for one in pods.outdated if is_done(one) and not traits(pods.by_ordinal[one]).terminating]
    expanding = [ordinal for ordinal in expansion.incompatible if ordinal not in numbers.values()]
    return [*expanding, *preparing, *(numbers[pod.metadata.uid] for pod in ordered[:places])]


def _missing_old(context: PlanContext) -> int:
    """Count the missing pods that come back on the old revision (§4.6): they use up no place of updated pods."""
    old = len(context.pods.outdated)
    return min(max(context.targets.partition - old, 0), context.pods.missing_count)


class _Update:
    """The walk over the targets, and the pods that it makes unavailable."""

    def __init__(self, context: PlanContext, builder: PlanBuilder) -> None:
        self._context = context
        self._builder = builder
        self._expansion = VolumeExpansion(context)
        self._unavailable = context.pods.unavailable | self._expansion.unready
        self._used = set(self._unavailable)  # before this pass used any
        self._spare = Spare(context)
        self._deleting: set[int] = set()
        self._chains: list[Chain] = []
        self._updated: list[Pod] = []
        self._held: list[Pod] = []

    def _count(self) -> int:
        return len(self._unavailable) + self._context.pods.unseen

    def delete_specified(self) -> None:
        """Delete the pods with the specified-delete label, regardless of the partition.

        A pod that may not be deleted now does not block the pods below it.
        """
        blocked: list[Pod] = []
        for ordinal in self._context.pods.specified:
            pod = self._context.pods.by_ordinal[ordinal]
            kind = traits(pod)
            if not kind.terminating and not self._may(ordinal):
                blocked.append(pod)
                continue
            self._deleting.add(ordinal)
            self._use(ordinal)
            if not kind.terminating and kind.state != PREPARING_DELETE:
                self._delete(pod, delete_chain(self._context, pod, Intent.DELETE, "specified for deletion"))
        if blocked:
            self._explain_budget(f"{named(blocked)} (specified for deletion)", blocked)

    def update(self) -> None:
        """Update targets in order while the budget allows; after that, only broken ones."""
        context, rest = self._context, list[Pod]()
        proven = context.is_proven(missing=True)
        for ordinal in targets_of(context, self._expansion):
            if len(self._chains) >= MAX_CHAINS_PER_PASS:
                break
            pod = context.pods.by_ordinal[ordinal]
            if not (self._may(ordinal) if not rest else proven and is_broken(context, ordinal, pod)):
                rest.append(pod)
            elif not self._try_advance(ordinal):
                return
        if rest:
            self._explain_budget(named(rest), rest)
        for ordinal in context.pods.outdated:
            if is_off_revision(context, ordinal, context.pods.by_ordinal[ordinal]):
                self._delete_off_revision(ordinal)

    def repair(self, ordinal: int) -> None:
        """Update one broken pod out of order."""
        if is_off_revision(self._context, ordinal, self._context.pods.by_ordinal[ordinal]):
            self._delete_off_revision(ordinal)
        else:
            self._try_advance(ordinal)

    def stage(self) -> None:
        """Stage the writes and explain them."""
        self._builder.stage(self._chains)
        if self._updated:
            name = self._context.update_name
            text = f"updating {pods_word(len(self._updated))} to {name}"
            self._builder.reason(State.PROGRESSING, "Updating", text, self._updated)
        if self._held:
            text = f"the hooks hold {named(self._held)}"
            self._builder.reason(State.HELD, "WaitingForHook", text, self._held)

    def _may(self, ordinal: int) -> bool:
        """Report whether the pod may become unavailable, or does not serve anyway."""
        if self._count() < self._context.targets.max_unavailable:
            return True
        if ordinal not in self._unavailable:
            return False
        return not self._spare.is_late(ordinal) or self._spare.has(ordinal)

    def _use(self, ordinal: int) -> None:
        """Count the pod as unavailable from now on."""
        if ordinal not in self._unavailable or self._spare.is_late(ordinal):
            self._spare.take(self._context.pods.by_ordinal[ordinal])
        self._unavailable.add(ordinal)

    def _try_advance(self, ordinal: int) -> bool:
        """Advance one target, and report what prevents it. Return False if the phase stops at it."""
        try:
            self._advance(ordinal)
        except UpdateRefused as error:
            self._builder.errors.append(("update", str(error)))
            self._builder.reason(State.STUCK, "InPlaceImpossible", error.explained, error.pods)
            return False
        except ResizeRefused as error:
            self._builder.events += [error.event] if error.event else []
            self._builder.errors.append((RESIZE, str(error)))
            pod = self._context.pods.by_ordinal[ordinal]
            self._builder.reason(State.STUCK, "ResizeImpossible", str(error), [pod])
            return False
        return True

    def _delete_off_revision(self, ordinal: int) -> None:
        """Delete a pod that is on neither revision that a new pod could get."""
        pod = self._context.pods.by_ordinal[ordinal]
        if pod.metadata.uid not in self._builder.touched and traits(pod).state != PREPARING_DELETE:
            cause = f"broken, and on neither {self._context.update_name} nor the current revision"
            self._delete(pod, delete_chain(self._context, pod, Intent.REPLACE, cause))

    def _advance(self, ordinal: int) -> None:
        """Advance one target. Raises UpdateRefused or ResizeRefused."""
        pod = self._context.pods.by_ordinal[ordinal]
        kind = traits(pod)
        if self._expansion.on:
            expanded = self._expansion.expand(ordinal)
            self._chains += expanded
            if expanded or not self._expansion.is_complete(ordinal):
                self._use(ordinal)
                self._builder.reason(
                    State.WAITING, "WaitingForVolume", f"the volumes of {pod.metadata.name} grow", [pod]
                )
                return
        if self._context.is_updated(ordinal, pod):
            return  # only its claims had to grow
        self._use(ordinal)
        busy = kind.terminating or kind.state == PREPARING_DELETE or ordinal in self._deleting or in_grace(pod)
        if not busy and pod.metadata.uid not in self._builder.touched:
            self._change(ordinal, pod)

    def _change(self, ordinal: int, pod: Pod) -> None:
        """Update the pod in place if wanted and possible, else recreate it. Raises UpdateRefused."""
        if must_be_recreated(self._context, ordinal, pod):
            if self._delete(pod, recreate_chain(self._context, pod)):
                self._updated.append(pod)
            return
        chain = in_place_chain(self._context, pod, self._builder.deadlines)
        if chain is None:
            text = f"find strategy is InPlaceOnly but Pod {pod.metadata.name} can not update in-place"
            raise UpdateRefused(text, [pod], _hindrance(self._context, pod))
        if not chain:
            self._held.append(pod)
        elif self._context.disruptions.try_take_for(pod, chain):
            self._builder.touch(pod)
            self._chains.append(chain)
            self._updated.append(pod)

    def _delete(self, pod: Pod, chain: Chain) -> bool:
        """Plan the writes that delete or hold the pod. Return False if there are none."""
        if is_held(self._context, pod):
            self._held.append(pod)
        if chain and self._builder.touch(pod):
            self._chains.append(chain)
        return bool(chain)

    def _explain_budget(self, waiting: str, pods: list[Pod]) -> None:
        """Name what uses up the budget: pods that are, or in this pass become, unavailable."""
        context, by_ordinal = self._context, self._context.pods.by_ordinal
        before = sorted(self._used, reverse=True)
        pods_before = [by_ordinal[ordinal] for ordinal in before if ordinal in by_ordinal]
        users = [state_of(context, pod) for pod in pods_before[:3]]
        users += [f"{context.pod_name(ordinal)} is missing" for ordinal in before if ordinal not in by_ordinal][:3]
        taken = len(self._unavailable) - len(self._used)
        users += [f"{pods_word(taken)} of this pass"] if taken else []
        limit = context.targets.max_unavailable
        text = f"{waiting}; maxUnavailable {limit} is used: {'; '.join(users)}"
        self._builder.reason(State.WAITING, "WaitingForMaxUnavailable", text, pods)


def in_place_chain(context: PlanContext, pod: Pod, deadlines: Deadlines) -> Chain | None:
    """Return the writes that update the pod in place, none while a hook holds it; None if it is impossible."""
    old, new = context.history.get(traits(pod).revision), context.revisions.update
    spec = in_place_spec(old, new, context.snapshot.gates) if old is not None else None
    if spec is None:
        return None
    strategy = context.rolling.in_place_update_strategy
    return update_in_place(
        pod,
        spec,
        context.in_place(pod),
        revision_labels={REVISION_LABEL: context.update_name},
        grace_seconds=strategy.grace_period_seconds if strategy else 0,
        deadlines=deadlines,
    )


def _hindrance(context: PlanContext, pod: Pod) -> str:
    """Return which part of the change cannot be made in place; empty if that is unknown."""
    old = context.history.get(traits(pod).revision)
    return hindrances_between(CODEC, old, context.revisions.update, context.snapshot.gates) if old is not None else ""
