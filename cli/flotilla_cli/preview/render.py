"""Renders a report for people: the changes, then the waves in order, then the totals."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import State
from flotilla_insight.preview.report import CREATED, REFUSED, SKIPPED, UNCHANGED, Report, Wave
from flotilla_insight.preview.steps import Step
from flotilla_insight.preview.words import (
    VERBS,
    changes_text,
    condition_of,
    details_of,
    label_of,
    listed,
    totals_text,
    value_text,
)

_NOUNS = {POD.kind: "pod", CLAIM.kind: "claim"}


_STYLES = {"delete": "red", "recreate": "yellow", "create": "green"}


def render(report: Report, *, everything: bool) -> Text:
    """Render the report; `everything`: each pod and each wave."""
    text = Text(report.place, style="bold").append(f"  {report.verdict}\n", "default")
    if report.verdict in (REFUSED, SKIPPED):
        return text.append(f"  {report.words}\n", style="red" if report.verdict == REFUSED else "dim")
    for change in report.changes:
        value = "changes" if change.hidden else value_text(change.before, change.after)
        text.append(f"  {change.path}: {value}\n")
    if report.verdict == UNCHANGED:
        text.append("  the apply changes nothing; already in progress:\n" if report.waves else "  nothing changes\n")
    if report.revision is not None and (report.waves or report.verdict == CREATED):
        text.append(f"  revision {report.revision.name}{' (new)' if report.revision.new else ''}\n")
    for first, last, waves in _runs(report.waves, everything=everything):
        _append_waves(text, first, last, waves, everything=everything)
    return _append_end(text, report)


def _runs(waves: Sequence[Wave], *, everything: bool) -> Iterable[tuple[int, int, Sequence[Wave]]]:
    """Yield runs of waves that do the same to as many pods: (first number, last number, waves)."""
    start = 0
    while start < len(waves):
        end = start + 1
        while not everything and end < len(waves) and _shape(waves[end]) == _shape(waves[start]):
            end += 1
        yield start + 1, end, waves[start:end]
        start = end


def _shape(wave: Wave) -> object:
    steps = sorted((step.do, step.kind, step.why, changes_text(step.changes)) for step in wave.steps)
    return bool(wave.ready), bool(wave.gone), bool(wave.answered), bool(wave.ended), wave.seconds, steps


def _append_waves(text: Text, first: int, last: int, waves: Sequence[Wave], *, everything: bool) -> None:
    """Append the condition of the waves, then each kind of step once."""
    number = f"{first}." if first == last else f"{first}.-{last}."
    when = condition_of(waves[0], everything=everything) + (
        f", and so on: {len(waves)} similar waves" if len(waves) > 1 else ""
    )
    text.append(f"{number:>4} ", style="bold").append(f"{when}\n", style="dim")
    kinds: dict[tuple[str, ...], list[Step]] = {}  # steps that read the same but for the names
    for step in (step for wave in waves for step in wave.steps):
        kinds.setdefault((step.do, step.kind, details_of(step)), []).append(step)
    for steps in kinds.values():
        text.append(f"       {_line(steps, everything=everything)}\n", style=_STYLES.get(steps[0].do, ""))


def _line(steps: Sequence[Step], *, everything: bool) -> str:
    step = steps[0]
    noun = _NOUNS.get(step.kind, step.kind)
    what = f"{len(steps)} {noun}s: " if len(steps) > 1 else "" if step.alias else f"{noun} "
    line = f"{VERBS.get(step.do, step.do)} {what}{listed([label_of(one) for one in steps], everything)}"
    details = details_of(step)
    return f"{line}: {details}" if details else line


def _append_end(text: Text, report: Report) -> Text:
    for reason in report.reasons:
        text.append("   → ", style="green" if reason.state is State.DONE else "yellow")
        text.append(reason.sentence).append(f"  [{reason.code}]\n", style="dim")
    if report.waves:
        text.append(f"  {totals_text(report)}\n")
    for note in report.notes:
        text.append(f"  note: {note}\n", style="dim")
    return text
