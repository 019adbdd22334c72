"""The blocks of a preview: fields that change, waves with a row for each pod, and the bounds of the rollout."""

from collections.abc import Iterator, Mapping

from flotilla_common.control.plan import State
from flotilla_console import paths
from flotilla_console.actions.preview import Foreseen
from flotilla_console.blocks.types import (
    AnyBlock,
    Badge,
    Column,
    Fact,
    Facts,
    Heading,
    Link,
    Mono,
    Notice,
    Paragraph,
    Row,
    Spans,
    Table,
    Tone,
    spans,
)
from flotilla_insight.preview.report import FieldChange, Report
from flotilla_insight.preview.steps import Step
from flotilla_insight.preview.words import VERBS, condition_of, details_of, label_of, totals_text, value_text

MOST_STEPS = 300
"""Rows of the table of steps; the totals count all."""

_TONES: Mapping[str, Tone] = {"delete": "bad", "recreate": "warn", "create": "ok"}
_REASONS: Mapping[State, Tone] = {State.STUCK: "bad", State.HELD: "warn", State.DONE: "ok"}


def foreseen_blocks(foreseen: Foreseen) -> Iterator[AnyBlock]:
    """Yield the blocks of a preview."""
    if foreseen.changes:
        yield _changes(foreseen)
    if foreseen.note:
        yield Paragraph(spans(foreseen.note))
    if foreseen.report is not None:
        yield from _rollout(foreseen.report)


def _changes(foreseen: Foreseen) -> Table:
    rows = tuple(Row(f"{one.path}", (spans(Mono(one.path)), spans(_value(one)))) for one in foreseen.changes)
    columns = (Column("field", "Field"), Column("change", "Change"))
    return Table("changes", "Fields that change", columns, rows, len(rows), limit=max(len(rows), 1))


def _value(change: FieldChange) -> str:
    return "changes" if change.hidden else value_text(change.before, change.after)


def _rollout(report: Report) -> Iterator[AnyBlock]:
    yield Heading("What happens to each pod")
    if not report.waves:
        yield Paragraph(spans("No pod changes."))
    else:
        yield Facts(tuple(_bounds(report)))
        yield _steps(report)
    for reason in report.reasons:
        yield Notice(_REASONS.get(reason.state, "busy"), spans(reason.sentence, " ", Badge(reason.code, "idle")))
    for note in report.notes:
        yield Paragraph(spans(f"Note: {note}"))


def _bounds(report: Report) -> Iterator[Fact]:
    if report.revision is not None:
        yield Fact("Revision", spans(Mono(report.revision.name), " (new)" if report.revision.new else ""))
    yield Fact("In all", spans(totals_text(report)))
    if (serving := report.serving) is not None:
        yield Fact(
            "Serving pods", spans(f"{serving.now} now, {serving.lowest} at the lowest, {serving.end} in the end")
        )
        if serving.max_unavailable is not None:
            yield Fact("maxUnavailable", spans(str(serving.max_unavailable)))


def _steps(report: Report) -> Table:
    numbered = [(number, wave, step) for number, wave in enumerate(report.waves, 1) for step in wave.steps]
    rows = tuple(
        Row(f"{index}", (spans(str(number)), spans(condition_of(wave, everything=False)), *_cells(report, step)))
        for index, (number, wave, step) in enumerate(numbered[:MOST_STEPS])
    )
    columns = (
        Column("wave", "Wave", numeric=True),
        Column("when", "When"),
        Column("step", "Step"),
        Column("object", "Object"),
        Column("details", "Details"),
    )
    return Table("steps", "Steps in order", columns, rows, len(numbered), limit=MOST_STEPS)


def _cells(report: Report, step: Step) -> tuple[Spans, Spans, Spans]:
    tone: Tone = "bad" if step.refused else _TONES.get(step.do, "busy")
    return spans(Badge(VERBS.get(step.do, step.do), tone)), _object(report, step), spans(details_of(step))


def _object(report: Report, step: Step) -> Spans:
    """Return the object of a step; a pod that exists already is a link."""
    if step.kind == "Pod" and step.name and step.do != "create":
        return spans(Link(label_of(step), paths.pod(step.namespace or report.namespace, step.name)))
    return spans(label_of(step) if step.kind == "Pod" else f"{step.kind} {label_of(step)}")
