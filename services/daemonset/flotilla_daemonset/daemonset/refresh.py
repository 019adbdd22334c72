"""The refresh step (daemonset.md §4.3 step 8)."""

from flotilla_common.control.draft import Draft
from flotilla_common.workload.inplace.step import Due, stage_refreshes
from flotilla_common.workload.predicates import is_settled
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pods import is_terminating

FINISHED = ("Failed", "Succeeded")


def plan_refresh(context: PlanContext, draft: Draft, *, at: int) -> None:
    """Plan it as a stage at position `at`."""
    pods = (
        Due(pod=pod, context=context.in_place, on_target=context.criteria.is_updated(pod))
        for pod in context.members.own
        if not (is_settled(pod) or is_terminating(pod) or pod.status.phase in FINISHED)
    )
    stage_refreshes(draft, pods, at=at)
