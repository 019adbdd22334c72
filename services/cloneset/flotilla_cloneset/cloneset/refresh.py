"""The refresh step (cloneset.md §4.8 step 1), which also fills in missing labels.

The update step counts refreshed pods as the snapshot shows them, leaves them their place in the update order, and does
not plan them again.
"""

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.control.draft import Draft
from flotilla_common.workload.inplace import InPlaceContext
from flotilla_common.workload.inplace.step import Due, stage_refreshes
from flotilla_common.workload.recipe import belongs, short_hash


def plan_refresh(context: PlanContext, draft: Draft, *, direction: int, at: int | None = None) -> None:
    """Plan it as a stage at position `at`, or at the end. `direction`: where the update step moves pods, 1 to the
    update revision, -1 back to the current one, 0 nowhere."""
    in_place = context.in_place
    stage_refreshes(draft, (_due(context, in_place, pod, direction) for pod in context.pods.unsettled), at=at)


def _due(context: PlanContext, in_place: InPlaceContext, pod: Pod, direction: int) -> Due:
    target = context.revisions.current if direction < 0 else context.revisions.update
    on_target = belongs(pod.revision, target.metadata.name)
    return Due(
        pod=pod,
        context=in_place,
        on_target=on_target,
        wanted=direction != 0 and not on_target,
        backfill={keys.TEMPLATE_HASH_LABEL: short_hash(pod.revision)} if pod.revision else None,
    )
