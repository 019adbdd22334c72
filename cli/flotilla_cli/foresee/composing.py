"""Puts a story together from what was played."""

from collections.abc import Sequence

from flotilla_cli.foresee.changes import changes_of
from flotilla_cli.foresee.dryrun import Applied
from flotilla_cli.foresee.observer import Observer
from flotilla_cli.foresee.story import CHANGED, CREATED, UNCHANGED, Revision, Serving, Story, Wave, totals_of
from flotilla_cli.views import view_of
from flotilla_cli.views.kindview import KindView, revision_of
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import REVISION
from flotilla_common.control.plan import Create, Intent, Plan
from flotilla_common.model.writes import Write


def composed(
    applied: Applied, waves: tuple[Wave, ...], writes: Sequence[Write], observer: Observer, plan: Plan
) -> Story:
    """The story of an apply. `writes`: all that changed something; `plan`: the one that stands in the end."""
    kind = view_of(applied.manifest.kind.resource)
    changes = () if applied.before is None else changes_of(applied.before, applied.after, kind.secret_fields)
    return Story(
        kind=applied.manifest.kind.name,
        namespace=applied.namespace,
        name=applied.manifest.name,
        verdict=CREATED if applied.before is None else CHANGED if changes else UNCHANGED,
        changes=changes,
        revision=_revision(kind, applied, writes),
        waves=waves,
        totals=totals_of([step for wave in waves for step in wave.steps], sum(map(_counts, writes))),
        serving=_serving(observer, plan),
        reasons=plan.reasons,
        numbers=plan.numbers,
    )


def _serving(observer: Observer, plan: Plan) -> Serving | None:
    """None for what has no pods."""
    if not observer.before and not observer.serving:
        return None
    return Serving(
        now=observer.before,
        lowest=observer.lowest,
        end=observer.serving,
        max_unavailable=plan.numbers.get("maxUnavailable"),
    )


def _counts(write: Write) -> bool:
    """Statuses are written as often as there is time for it: nobody can tell how often that will be."""
    return write.action.intent is not Intent.STATUS


def _revision(kind: KindView, applied: Applied, writes: Sequence[Write]) -> Revision | None:
    """The revision that the last status names."""
    latest: Json = applied.stored
    made: set[str] = set()
    for write in writes:
        if write.action.resource == kind.resource and write.after is not None:
            latest = write.after
        if isinstance(write.action, Create) and write.action.resource == REVISION:
            made.add(write.action.name)
    name = revision_of(kind, latest)
    return Revision(name, new=name in made) if name else None
