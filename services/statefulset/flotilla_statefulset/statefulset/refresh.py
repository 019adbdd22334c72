"""The refresh step (statefulset.md §4.11), also behind a pod that OrderedReady waits for.

An update that has half begun and does not go on in this pass is undone: behind a pod that OrderedReady waits for,
nobody would ever finish it.
"""

from flotilla_common.control.draft import Draft
from flotilla_common.workload.inplace.step import Due, stage_refreshes
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.due import may_be_updated


def plan_refresh(context: PlanContext, draft: Draft, *, at: int) -> None:
    """Plan it as a stage at position `at`."""
    stage_refreshes(draft, (_due(context, ordinal) for ordinal in context.pods.unsettled), at=at)


def _due(context: PlanContext, ordinal: int) -> Due:
    pod = context.pods.by_ordinal[ordinal]
    on_target = pod.revision == context.update_name or not may_be_updated(context, ordinal, pod)
    return Due(pod=pod, context=context.in_place(pod), on_target=on_target)
