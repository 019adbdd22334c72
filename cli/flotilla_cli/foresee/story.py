"""An apply as a story: waves of steps, each with what it waits for, and what it all comes to; put together from what
was played."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from flotilla_cli.foresee.changes import FieldChange, changes_of
from flotilla_cli.foresee.dryrun import Applied
from flotilla_cli.foresee.observer import Observer
from flotilla_cli.foresee.steps import Step
from flotilla_cli.views import view_of
from flotilla_cli.views.kindview import KindView, revision_of
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import REVISION
from flotilla_common.control.plan import Create, Intent, Plan, Reason
from flotilla_common.model.writes import Write

CREATED, CHANGED, UNCHANGED, REFUSED, SKIPPED = "created", "changed", "unchanged", "refused", "skipped"


class Wave(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is done at one time; steps of a wave are done side by side."""

    ready: tuple[str, ...] = ()  # the pods that it waited for to serve
    gone: tuple[str, ...] = ()  # the pods that it waited for to go
    answered: tuple[str, ...] = ()  # the nodes whose agents it waited for
    ended: tuple[str, ...] = ()  # the pods whose work it waited for
    seconds: int = 0  # that have to pass beyond that
    steps: tuple[Step, ...]


class Serving(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many pods serve: now, at the worst moment, in the end."""

    now: int
    lowest: int
    end: int
    max_unavailable: int | None = None


class Revision(msgspec.Struct, frozen=True):
    """The revision that pods move to."""

    name: str
    new: bool


class Totals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods, and writes but for statuses of the object itself. A recreated pod counts neither as created nor as
    deleted."""

    updated_in_place: int = 0
    recreated: int = 0
    created: int = 0
    deleted: int = 0
    writes: int = 0


class Story(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What becomes of one object of the file."""

    kind: str
    namespace: str = ""
    name: str
    verdict: str
    words: str = ""  # of a refusal, or why it is skipped
    changes: tuple[FieldChange, ...] = ()
    revision: Revision | None = None
    waves: tuple[Wave, ...] = ()
    totals: Totals = Totals()
    serving: Serving | None = None
    reasons: tuple[Reason, ...] = ()  # of the plan that stands in the end
    numbers: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """As people name it."""
        return f"{self.kind} {f'{self.namespace}/{self.name}' if self.namespace else self.name}"


def totals_of(steps: Sequence[Step], writes: int) -> Totals:
    """Count what is done to pods."""
    counts = Counter(step.do for step in steps if step.kind == "Pod" and not step.refused)
    updated = {step.name for step in steps if step.kind == "Pod" and step.do in ("updateInPlace", "resizeInPlace")}
    recreated = counts["recreate"]
    return Totals(
        updated_in_place=len(updated),
        recreated=recreated,
        created=max(counts["create"] - recreated, 0),
        deleted=counts["delete"],
        writes=writes,
    )


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
