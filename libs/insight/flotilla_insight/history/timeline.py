"""Composes the history of an object, or a pod, from its records: generations with steps and totals."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median

import msgspec

from flotilla_common.control.plan import UPDATES_IN_PLACE
from flotilla_insight.history.generations import Generation, ObjectRecords, Pod, Writer, generations, is_user_write
from flotilla_insight.history.operations import Operation, operations, waves
from flotilla_insight.history.steps import (
    WISHED,
    TimelineStep,
    changed,
    done_at,
    end_step,
    first_step,
    other_steps,
    refusal_steps,
    use_steps,
    wait_step,
    waits,
    wave_steps,
    who,
)
from flotilla_insight.published import Act


class GenerationTotals(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The totals of a generation.

    `seconds` until it was done, or until the last event; those of pods from the first write until the pod is ready
    again.
    """

    seconds: float
    writes: int
    refused: int
    decisions: int
    pods: int
    pod_writes: int
    typical_seconds: float | None = None
    slowest_seconds: float | None = None
    slowest: str = ""
    last: str = ""  # the pod that was done last


class GenerationView(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A generation as shown. `done` is None while it is not; `writes` has every single one."""

    began: datetime
    generation: int
    title: str
    changes: list[str] = []
    steps: list[TimelineStep]
    done: datetime | None = None
    totals: GenerationTotals | None = None  # None for a generation about one pod
    writes: tuple[Act, ...] = ()


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """All generations, and notes about the record itself."""

    kind: str
    namespace: str
    name: str
    notes: list[str]
    chapters: list[GenerationView]


def timeline(record: ObjectRecords, now: datetime) -> Timeline:
    """Return the history of the object, as far back as it is recorded."""
    found = generations(record)
    whole = bool(found) and found[0].user_write is not None and found[0].user_write.action == "create"
    return Timeline(
        kind=record.kind,
        namespace=record.namespace,
        name=record.name,
        notes=[] if whole or record.begins is None else [_begins(record.begins)],
        chapters=[_generation_view(generation, record, now) for generation in found],
    )


def _begins(moment: datetime) -> str:
    """Return the note for an object that may be older than the record."""
    return (
        f"the record begins at {moment.astimezone():%Y-%m-%d %H:%M:%S}: nothing older is known "
        "(a day is kept; less if much was written, or the bus was wiped)"
    )


def _generation_view(generation: Generation, record: ObjectRecords, now: datetime) -> GenerationView:
    done = done_at(generation.decisions)
    until = generation.until or now
    changes = _changes(generation)
    work = operations(generation.writes, record.kind, _untouched(record))
    steps = [
        *first_step(generation.decisions),
        *wave_steps(waves(work)),
        *map(wait_step, waits(generation.decisions, done or until)),
        *refusal_steps(generation.writes),
        *use_steps(generation.uses),
        *other_steps(generation.user_writes),
        *end_step(generation.decisions, done),
    ]
    return GenerationView(
        began=generation.began,
        generation=generation.generation,
        title=_title(generation, record.writers),
        changes=changes,
        steps=sorted(steps, key=lambda step: step.at),
        done=done,
        totals=totals(generation, work, done),
        writes=generation.writes,
    )


def _untouched(record: ObjectRecords) -> Mapping[str, Pod]:
    """Return the pods that are Ready since their creation; others may be Ready since an update."""
    updated = {write.name for write in record.writes if write.intent in UPDATES_IN_PLACE}
    return {name: pod for name, pod in record.pods.items() if name not in updated}


def _title(generation: Generation, writers: Sequence[Writer]) -> str:
    write = generation.user_write
    if write is not None and not write.ok:
        return f"creation by {who(write)} rejected"
    if write is not None:
        verb = {"create": "created", "delete": "deleted"}.get(write.action, "changed")
        return f"{verb} by {who(write)}"
    scaler = next((one for one in writers if one.subresource == "scale"), None)
    if scaler is not None and [name for name, _, _ in _renumbered(generation)] == ["replicas"]:
        return f"scaled with {scaler.manager}, without a webhook call"
    timed = [(one.at, one) for one in writers if one.at is not None and one.at <= generation.began]
    if not timed:
        return "changed, author unknown: the webhook has not recorded it"
    _, newest = max(timed, key=lambda pair: pair[0])
    return f"changed without a webhook call; fields were last written by {newest.manager} ({newest.operation})"


def _changes(generation: Generation) -> list[str]:
    """Return the changes by the webhook's report, or else the numbers of the spec that changed."""
    if generation.user_write is not None:
        return changed(generation.user_write) if generation.user_write.ok else [generation.user_write.message]
    return [f"{name}  {before} → {after}" for name, before, after in _renumbered(generation)]


def _renumbered(generation: Generation) -> list[tuple[str, int, int]]:
    """Return the numbers of the spec that changed, with both values."""
    after: Mapping[str, int] = generation.decisions[0].numbers if generation.decisions else {}
    before = generation.numbers
    both = [name for name in WISHED if name in before and name in after]
    return [(name, before[name], after[name]) for name in both if before[name] != after[name]]


def totals(generation: Generation, work: Sequence[Operation], until: datetime | None) -> GenerationTotals:
    """Sum up the generation. `until`: when it was done, or None."""
    until = until or _latest(generation)
    lasting = [one for one in work if one.lasts and one.seconds is not None]
    slowest = max(lasting, key=lambda one: one.seconds or 0, default=None)
    last = max(lasting, key=lambda one: one.ended or one.last, default=None)
    good = [write for write in generation.writes if write.ok]
    on_pods = [write for write in good if write.kind == "Pod"]
    return GenerationTotals(
        seconds=round((until - generation.began).total_seconds(), 3),
        writes=len(good),
        refused=len(generation.writes) - len(good),
        decisions=len(generation.decisions),
        pods=len({write.name for write in on_pods}),
        pod_writes=len(on_pods),
        typical_seconds=round(median(one.seconds or 0 for one in lasting), 3) if lasting else None,
        slowest_seconds=round(slowest.seconds or 0, 3) if slowest else None,
        slowest=slowest.begin.name if slowest else "",
        last=last.begin.name if last else "",
    )


def _latest(generation: Generation) -> datetime:
    moments = [one.at for one in generation.decisions if one.at] + [write.at for write in generation.writes]
    return max(moments, default=generation.began)


def pod_timeline(record: ObjectRecords) -> Timeline:
    """Return the history of a pod, as one generation; without any if nothing is recorded."""
    pod = record.pods.get(record.name, Pod())
    own = {"created": pod.created, "scheduled": pod.scheduled, "Ready": pod.ready}
    steps = [TimelineStep(at=at, tone="note", text=f"{what} (to the second)") for what, at in own.items() if at]
    steps = sorted([*steps, *map(_write, record.writes)], key=lambda step: step.at)
    older = record.begins is not None and (pod.created is None or pod.created < record.begins)
    title = "its events"
    return Timeline(
        kind=record.kind,
        namespace=record.namespace,
        name=record.name,
        notes=[_begins(record.begins)] if older and record.begins else [],
        chapters=[GenerationView(began=steps[0].at, generation=0, title=title, steps=steps)] if steps else [],
    )


def _write(write: Act) -> TimelineStep:
    said = f": {write.message}" if write.message else ""
    what = f"{write.action} {write.subresource}".rstrip()
    if is_user_write(write):  # decided by the named object
        text = f"{what} by {who(write)}, decided by {write.owner.kind} {write.owner.name} → {write.outcome}{said}"
    else:
        whose = f" for {write.owner.kind} {write.owner.name}" if write.owner.name else ""
        text = f"{write.service}: {what}, {write.cause}{whose} → {write.outcome}{said}"
    return TimelineStep(at=write.at, tone="write" if write.ok else "bad", text=text)
