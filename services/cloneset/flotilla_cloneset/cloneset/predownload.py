"""When a CloneSet has images pulled ahead of its in-place updates (common.md §12)."""

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.podupdate import RECREATE
from flotilla_cloneset.cloneset.revisions import RECIPE, in_place_spec
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.rollout import InPlaceUpdateStrategy
from flotilla_common.control.draft import Draft
from flotilla_common.workload.predownload import ImagePulls, plan_ahead

FEW = 3
"""Up to so many pods are updated sooner than a job is made."""


def plan_predownload(context: PlanContext, draft: Draft) -> None:
    """Nothing unless the snapshot says which jobs there are: then image pulls ahead are switched on."""
    jobs, revisions = context.snapshot.pull_jobs, context.revisions
    if jobs is None or revisions.writes:
        return
    cloneset, settings = context.snapshot.cloneset, _settings(context)
    pulls = ImagePulls(
        resource=CLONE_SET,
        metadata=cloneset.metadata,
        selector=cloneset.spec.selector,
        recipe=RECIPE,
        update=revisions.update,
        old=(revisions.current,),
        parallelism=settings.image_pre_download_parallelism,
        timeout_seconds=settings.image_pre_download_timeout_seconds,
    )
    plan_ahead(pulls, jobs, draft, lambda: _is_worth_it(context) if _is_time(context) else None)


def _settings(context: PlanContext) -> InPlaceUpdateStrategy:
    return context.rolling.in_place_update_strategy or InPlaceUpdateStrategy()


def _is_time(context: PlanContext) -> bool:
    """Enough pods of the new revision are ready: a revision that does not even start is not worth pulling."""
    status = context.snapshot.cloneset.status
    ready = status.updated_ready_replicas if status.update_revision == context.revisions.update.metadata.name else 0
    return (_settings(context).image_pre_download_min_updated_ready_pods or 0) <= ready


def _is_worth_it(context: PlanContext) -> bool:
    """Pods are updated in place, in several rounds."""
    want, spec = context.targets, context.snapshot.cloneset.spec
    if spec.update_strategy.rolling_update is None or context.rolling.pod_update_policy == RECREATE:
        return False
    if spec.replicas <= FEW:
        return False
    if want.partition == 0 and _all_at_once(context):
        return False
    revisions = context.revisions
    return in_place_spec(revisions.current, revisions.update, context.snapshot.gates) is not None


def _all_at_once(context: PlanContext) -> bool:
    """The update takes all pods at once; the default of maxUnavailable does not."""
    limit, replicas = context.rolling.max_unavailable, context.snapshot.cloneset.spec.replicas
    try:
        return limit is not None and lenient_value(limit, replicas, round_up=False) >= replicas
    except ValueError:
        return False  # the reason is given where the number is used
