"""Children that have ended: the latest of each sort stay (advancedcronjob.md §4.7)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Chain, Intent
from flotilla_common.control.writes import delete_of
from flotilla_jobs.advancedcronjob.context import PlanContext
from flotilla_jobs.advancedcronjob.snapshot import Child

_NEVER = datetime.min.replace(tzinfo=UTC)


def plan_history(context: PlanContext, draft: Draft) -> None:
    """Delete those beyond the limits. A failure keeps nothing else from being done."""
    spec, children = context.job.spec, context.children
    chains = [
        *_beyond(context, children.failed, spec.failed_jobs_history_limit),
        *_beyond(context, children.successful, spec.successful_jobs_history_limit),
    ]
    draft.stage(chains, stop_on_failure=False)


def _beyond(context: PlanContext, ended: Sequence[Child], limit: int | None) -> Iterator[Chain]:
    """Deletes of those that started first. No limit: all stay."""
    here = [child for child in ended if child.metadata.deletion_timestamp is None]
    surplus = 0 if limit is None else max(len(here) - max(limit, 0), 0)
    resource = context.job.spec.template.chosen[0]
    for child in sorted(here, key=lambda child: child.status.start_time or _NEVER)[:surplus]:
        yield (delete_of(resource, child.metadata, Intent.CLEAN_UP, f"history limit {limit}"),)
