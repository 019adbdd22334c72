"""An apply as a story, put together from what was played: what it changes on the object itself, field by field (values
that may be secret are not shown); waves of steps, each with what it waits for; and what it all comes to."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from flotilla_cli.bundle.redact import MAPPINGS, PAIRS, TEXTS
from flotilla_cli.foresee.dryrun import LAST_APPLIED, Applied
from flotilla_cli.foresee.observer import Observer
from flotilla_cli.foresee.steps import Step
from flotilla_cli.views import view_of
from flotilla_cli.views.kindview import KindView, revision_of
from flotilla_common.api.differences import Path, differences, path_text, value_at
from flotilla_common.api.documents import Json, JsonValue, is_object, mapping, strings
from flotilla_common.api.resources import REVISION
from flotilla_common.control.plan import Create, Intent, Plan, Reason
from flotilla_common.model.writes import Write

_HIDDEN = TEXTS | MAPPINGS | {"data", "stringData", "binaryData", "annotations"}
"""Members whose values may be secret, wherever they stand."""

CREATED, CHANGED, UNCHANGED, REFUSED, SKIPPED = "created", "changed", "unchanged", "refused", "skipped"


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True, rename={"before": "from", "after": "to"}):
    """One field: absent before or afterwards is None, and so is what is not shown."""

    path: str
    before: JsonValue = None
    after: JsonValue = None
    hidden: bool = False


def changes_of(before: Json, after: Json, secret_fields: frozenset[str] = frozenset()) -> tuple[FieldChange, ...]:
    """Return the differences of spec, labels and annotations, in order. `secret_fields`: what else the kind hides."""
    hidden = _HIDDEN | secret_fields
    return tuple(
        _field(one.path, before, after, hidden)
        for one in differences(_shown(before), _shown(after))
        if one.path != ("metadata",)
    )


def _shown(document: Json) -> Json:
    """The object without what the apiserver and `kubectl apply` write for themselves."""
    metadata = mapping(document.get("metadata"))
    annotations = strings(metadata.get("annotations"))
    annotations = {key: value for key, value in annotations.items() if not _is_bookkeeping(key)}
    parts: Json = {"labels": strings(metadata.get("labels")), "annotations": annotations}
    return {"metadata": parts, "spec": mapping(document.get("spec"))}


def _is_bookkeeping(annotation: str) -> bool:
    return annotation == LAST_APPLIED or annotation.startswith("kruise.io/sidecarset-hash")


def _field(path: Path, before: Json, after: Json, hidden: frozenset[str]) -> FieldChange:
    text = path_text(path, after if value_at(after, path) is not None else before)
    if any(part in hidden or (part in PAIRS and path[-1] != "name") for part in path):
        return FieldChange(text, hidden=True)
    return FieldChange(text, _plain(value_at(before, path), hidden), _plain(value_at(after, path), hidden))


def _plain(value: JsonValue, hidden: frozenset[str]) -> JsonValue:
    """The value without what may be secret inside of it."""
    if is_object(value):
        return {key: "…" if key in hidden or key in PAIRS else _plain(item, hidden) for key, item in value.items()}
    return [_plain(item, hidden) for item in value] if isinstance(value, list) else value


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
    deleted; what Kubernetes' own controllers do with pods of Deployments and StatefulSets is counted apart."""

    updated_in_place: int = 0
    recreated: int = 0
    created: int = 0
    deleted: int = 0
    created_by_kubernetes: int = 0
    deleted_by_kubernetes: int = 0
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


def totals_of(steps: Sequence[Step], writes: int, *, made: int = 0, gone: int = 0) -> Totals:
    """Count what is done to pods. `made`, `gone`: how many there were in all; what no step did, Kubernetes did."""
    counts = Counter(step.do for step in steps if step.kind == "Pod" and not step.refused)
    updated = {step.name for step in steps if step.kind == "Pod" and step.do in ("updateInPlace", "resizeInPlace")}
    recreated = counts["recreate"]
    return Totals(
        updated_in_place=len(updated),
        recreated=recreated,
        created=max(counts["create"] - recreated, 0),
        deleted=counts["delete"],
        created_by_kubernetes=max(made - counts["create"], 0),
        deleted_by_kubernetes=max(gone - counts["delete"] - recreated, 0),
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
        totals=totals_of(
            [step for wave in waves for step in wave.steps],
            sum(map(_counts, writes)),
            made=observer.made,
            gone=observer.gone,
        ),
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
