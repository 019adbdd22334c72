"""When a StatefulSet has images pulled ahead of its in-place updates (statefulset.md §7.3, common.md §12)."""

from flotilla_common.api import keys
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.numbers import integer, strict_value
from flotilla_common.control.draft import Draft
from flotilla_common.workload.predownload import ImagePulls, plan_ahead
from flotilla_statefulset.statefulset.context import RECREATE, PlanContext
from flotilla_statefulset.statefulset.revisions import RECIPE, in_place_spec

FEW = 3
"""Up to so many pods are updated sooner than a job is made."""


def plan_predownload(context: PlanContext, draft: Draft) -> None:
    """Nothing unless the snapshot says which jobs there are: then image pulls ahead are switched on."""
    jobs, revisions = context.snapshot.pull_jobs, context.revisions
    if jobs is None or revisions.writes:
        return
    pulls = ImagePulls(
        resource=STATEFUL_SET,
        metadata=context.statefulset.metadata,
        selector=context.statefulset.spec.selector,
        recipe=RECIPE,
        update=revisions.update,
        old=(revisions.current,),
        parallelism=_number(context, keys.PULL_PARALLELISM),
        timeout_seconds=_number(context, keys.PULL_TIMEOUT_SECONDS),
    )
    plan_ahead(pulls, jobs, draft, lambda: _is_worth_it(context) if _is_time(context) else None)


def _number(context: PlanContext, annotation: str) -> int | None:
    """The annotation's number; None if there is none that can be read."""
    number = integer(context.statefulset.metadata.annotations.get(annotation, ""))
    return number if number is not None and number >= 0 else None


def _is_time(context: PlanContext) -> bool:
    """Enough pods of the new revision are ready: a revision that does not even start is not worth pulling."""
    status, replicas = context.statefulset.status, context.targets.replicas
    ready = status.updated_ready_replicas if status.update_revision == context.update_name else 0
    text = context.statefulset.metadata.annotations.get(keys.PULL_MIN_UPDATED_READY, "")
    try:
        number = integer(text)
        return (strict_value(text, replicas, round_up=True) if number is None else number) <= ready
    except ValueError:
        return True


def _is_worth_it(context: PlanContext) -> bool:
    """Pods are updated in place, in several rounds."""
    targets = context.targets
    rolling = context.statefulset.spec.update_strategy.rolling_update
    if targets.on_delete or rolling is None or (rolling.pod_update_policy or RECREATE) == RECREATE:
        return False
    if targets.replicas <= FEW or (targets.partition == 0 and targets.max_unavailable >= targets.replicas):
        return False
    revisions = context.revisions
    return in_place_spec(revisions.current, revisions.update, context.snapshot.gates) is not None
