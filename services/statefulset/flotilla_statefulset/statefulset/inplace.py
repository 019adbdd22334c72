"""Updates one pod of a StatefulSet in place (statefulset.md §4.8)."""

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.control.plan import Chain
from flotilla_common.control.planbuilder import Deadlines
from flotilla_common.workload.inplace import update_in_place
from flotilla_common.workload.inplace.calculate import hindrances_between
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pods import traits
from flotilla_statefulset.statefulset.revisions import CODEC, in_place_spec


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


def hindrance(context: PlanContext, pod: Pod) -> str:
    """Return which part of the change cannot be made in place; empty if that is unknown."""
    old = context.history.get(traits(pod).revision)
    return hindrances_between(CODEC, old, context.revisions.update, context.snapshot.gates) if old is not None else ""
