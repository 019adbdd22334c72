"""When a DaemonSet has images pulled ahead of its updates (daemonset.md §4.11)."""

from flotilla_common.api import keys
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, RollingUpdate
from flotilla_common.api.numbers import integer, strict_value
from flotilla_common.control.draft import Draft
from flotilla_common.workload.predownload import ImagePulls, is_decided, plan_no_pulls, plan_pulls, plan_removal
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.revisions import RECIPE


def plan_predownload(context: PlanContext, draft: Draft) -> None:
    """Nothing unless the snapshot says which jobs there are: then image pulls ahead are switched on."""
    jobs, revisions, status = context.snapshot.pull_jobs, context.revisions, context.daemonset.status
    rolling = context.daemonset.spec.update_strategy.rolling_update
    if jobs is None or revisions.writes or rolling is None or context.targets.on_delete:
        return
    if status.update_revision == revisions.hash and status.updated_number_scheduled == status.desired_number_scheduled:
        plan_removal(jobs, draft)
    elif is_decided(revisions.update):
        return
    elif context.targets.partition == 0 and _all_at_once(rolling, context.targets.desired):
        plan_no_pulls(revisions.update, draft)
    else:
        plan_pulls(_pulls(context), draft)


def _all_at_once(rolling: RollingUpdate, desired: int) -> bool:
    """One batch takes all nodes."""
    limit = 1 if rolling.max_unavailable is None else rolling.max_unavailable
    try:
        return strict_value(limit, desired, round_up=True) >= desired
    except ValueError:
        return False  # the reason is given where the number is used


def _pulls(context: PlanContext) -> ImagePulls:
    daemonset = context.daemonset
    annotations = daemonset.metadata.annotations
    return ImagePulls(
        resource=DAEMON_SET,
        metadata=daemonset.metadata,
        selector=daemonset.spec.selector,
        recipe=RECIPE,
        update=context.revisions.update,
        old=tuple(context.revisions.old),
        parallelism=_whole(annotations.get(keys.PULL_PARALLELISM)),
        timeout_seconds=_whole(annotations.get(keys.PULL_TIMEOUT_SECONDS)),
    )


def _whole(text: str | None) -> int | None:
    """The number of an annotation; None if it says none."""
    return None if text is None else integer(text)
