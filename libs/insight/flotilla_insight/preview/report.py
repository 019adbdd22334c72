"""The report about an apply, composed from its simulation.

It has the changes of the object itself, field by field (values that may be secret are hidden), waves of steps, each
with its condition, and the totals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.changes import Path, differences, path_text, value_at
from flotilla_common.api.documents import Json, JsonValue, is_object, mapping, strings
from flotilla_common.api.resources import REVISION
from flotilla_common.control.plan import Create, Intent, Plan, Reason
from flotilla_common.model.writes import Write
from flotilla_insight.preview.dryrun import LAST_APPLIED, Applied
from flotilla_insight.preview.observer import Observer
from flotilla_insight.preview.steps import Step
from flotilla_insight.redact import MAPPINGS, PAIRS, TEXTS
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import KindView, revision_of

_HIDDEN = TEXTS | MAPPINGS | {"data", "stringData", "binaryData", "annotations"}
"""Members whose values may be secret, at any depth."""

CREATED, CHANGED, UNCHANGED, REFUSED, SKIPPED = "created", "changed", "unchanged", "refused", "skipped"


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True, rename={"before": "from", "after": "to"}):
    """One field; None: absent or hidden."""

    path: str
    before: JsonValue = None
    after: JsonValue = None
    hidden: bool = False


def changes_of(before: Json, after: Json, secret_fields: frozenset[str] = frozenset()) -> tuple[FieldChange, ...]:
    """Return the differences of spec, labels and annotations, in order. `secret_fields`: more fields to hide."""
    hidden = _HIDDEN | secret_fields
    return tuple(
        _field(one.path, before, after, hidden)
        for one in differences(_shown(before), _shown(after))
        if one.path != ("metadata",)
    )


def _shown(document: Json) -> Json:
    """Return the object without the bookkeeping of the apiserver and `kubectl apply`."""
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
    """Return the value without members that may be secret."""
    if is_object(value):
        return {key: "…" if key in hidden or key in PAIRS else _plain(item, hidden) for key, item in value.items()}
    return [_plain(item, hidden) for item in value] if isinstance(value, list) else value


class Wave(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Steps at one time, done in parallel."""

    ready: tuple[str, ...] = ()  # pods that had to serve first
    gone: tuple[str, ...] = ()  # pods that had to go first
    answered: tuple[str, ...] = ()  # nodes whose agents had to report first
    ended: tuple[str, ...] = ()  # pods that had to end first
    seconds: int = 0  # that have to pass after that
    steps: tuple[Step, ...]


class Serving(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Number of serving pods: now, the lowest, in the end."""

    now: int
    lowest: int
    end: int
    max_unavailable: int | None = None


class Revision(msgspec.Struct, frozen=True):
    """The revision that pods move to."""

    name: str
    new: bool


class Totals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Numbers of pods, and of writes without statuses of the object itself.

    A recreated pod counts neither as created nor as deleted. Pods of Deployments and StatefulSets that Kubernetes' own
    controllers create and delete are counted separately.
    """

    updated_in_place: int = 0
    recreated: int = 0
    created: int = 0
    deleted: int = 0
    created_by_kubernetes: int = 0
    deleted_by_kubernetes: int = 0
    writes: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The report about one object of the file."""

    kind: str
    namespace: str = ""
    name: str
    verdict: str
    words: str = ""  # of a rejection, or why it is skipped
    changes: tuple[FieldChange, ...] = ()
    revision: Revision | None = None
    waves: tuple[Wave, ...] = ()
    totals: Totals = Totals()
    serving: Serving | None = None
    reasons: tuple[Reason, ...] = ()  # of the last plan
    numbers: Mapping[str, int] = {}
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return kind, namespace and name as people write them."""
        return f"{self.kind} {f'{self.namespace}/{self.name}' if self.namespace else self.name}"


def totals_of(steps: Sequence[Step], writes: int, *, made: int = 0, gone: int = 0) -> Totals:
    """Count the steps for pods. `made`, `gone`: all created and deleted pods; Kubernetes did the rest."""
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
) -> Report:
    """Compose the report. `writes`: all that had an effect; `plan`: the last one."""
    kind = view_of(applied.manifest.kind.resource)
    changes = () if applied.before is None else changes_of(applied.before, applied.after, kind.secret_fields)
    return Report(
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
    """Return None for an object without pods."""
    if not observer.before and not observer.serving:
        return None
    return Serving(
        now=observer.before,
        lowest=observer.lowest,
        end=observer.serving,
        max_unavailable=plan.numbers.get("maxUnavailable"),
    )


def _counts(write: Write) -> bool:
    """Report whether the write counts: the number of status writes depends on timing."""
    return write.action.intent is not Intent.STATUS


def _revision(kind: KindView, applied: Applied, writes: Sequence[Write]) -> Revision | None:
    """Return the revision that the last status names."""
    latest: Json = applied.stored
    made: set[str] = set()
    for write in writes:
        if write.action.resource == kind.resource and write.after is not None:
            latest = write.after
        if isinstance(write.action, Create) and write.action.resource == REVISION:
            made.add(write.action.name)
    name = revision_of(kind, latest)
    return Revision(name, new=name in made) if name else None
