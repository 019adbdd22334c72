"""Puts a story together from what was played."""

from collections.abc import Sequence

from flotilla_cli.foresee.changes import changes_of
from flotilla_cli.foresee.dryrun import Applied
from flotilla_cli.foresee.observer import Observer
from flotilla_cli.foresee.story import CHANGED, CREATED, UNCHANGED, Revision, Serving, Story, Wave, totals_of
from flotilla_cli.imagined.writes import Write
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.control.plan import Create, Patch, Plan

_REVISION_FIELDS = {
    CLONE_SET: "updateRevision",
    DAEMON_SET: "updateRevision",
    STATEFUL_SET: "updateRevision",
    SIDECAR_SET: "latestRevision",
}


def composed(
    applied: Applied, waves: tuple[Wave, ...], writes: Sequence[Write], observer: Observer, plan: Plan
) -> Story:
    """The story of an apply. `writes`: all that changed something; `plan`: the one that stands in the end."""
    changes = () if applied.before is None else changes_of(applied.before, applied.after)
    return Story(
        kind=applied.manifest.kind.name,
        namespace=applied.namespace,
        name=applied.manifest.name,
        verdict=CREATED if applied.before is None else CHANGED if changes else UNCHANGED,
        changes=changes,
        revision=_revision(applied, writes),
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
    action = write.action
    return not isinstance(action, Patch) or action.subresource != "status" or action.resource == POD


def _revision(applied: Applied, writes: Sequence[Write]) -> Revision | None:
    """The revision that the last status names."""
    field = _REVISION_FIELDS.get(applied.manifest.kind.resource)
    if field is None:
        return None
    latest: Json = applied.stored
    made: set[str] = set()
    for write in writes:
        if write.action.resource == applied.manifest.kind.resource and write.after is not None:
            latest = write.after
        if isinstance(write.action, Create) and write.action.resource == REVISION:
            made.add(write.action.name)
    name = text(member(latest, "status").get(field))
    if name and applied.manifest.kind.resource == DAEMON_SET:  # whose status has the hash alone
        name = f"{applied.manifest.name}-{name}"
    return Revision(name, new=name in made) if name else None
