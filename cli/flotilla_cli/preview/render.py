"""Renders a report for people: the changes, then the waves in order, then the totals."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.text import Text

from flotilla_cli.output import span
from flotilla_cli.preview.report import CREATED, REFUSED, SKIPPED, UNCHANGED, Report, Wave
from flotilla_cli.preview.steps import Step, ValueChange
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import State

NAMED = 5
"""Number of names in a line; the rest is counted."""

_VERBS = {
    "updateInPlace": "update in place",
    "resizeInPlace": "resize in place",
    "restart": "restart containers of",
    "mark": "mark for deletion",
    "hold": "wait for the hook of",
    "grace": "begin the grace period of",
    "inject": "inject into",
    "patch": "write",
}
_STYLES = {"delete": "red", "recreate": "yellow", "create": "green"}
_NOUNS = {POD.kind: "pod", CLAIM.kind: "claim"}


def render(report: Report, *, everything: bool) -> Text:
    """Render the report; `everything`: each pod and each wave."""
    text = Text(report.place, style="bold").append(f"  {report.verdict}\n", "default")
    if report.verdict in (REFUSED, SKIPPED):
        return text.append(f"  {report.words}\n", style="red" if report.verdict == REFUSED else "dim")
    for change in report.changes:
        value = "changes" if change.hidden else _values(change.before, change.after)
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
    steps = sorted((step.do, step.kind, step.why, _changes(step.changes)) for step in wave.steps)
    return bool(wave.ready), bool(wave.gone), bool(wave.answered), bool(wave.ended), wave.seconds, steps


def _append_waves(text: Text, first: int, last: int, waves: Sequence[Wave], *, everything: bool) -> None:
    """Append the condition of the waves, then each kind of step once."""
    number = f"{first}." if first == last else f"{first}.-{last}."
    when = _when(waves[0], everything=everything) + (
        f", and so on: {len(waves)} similar waves" if len(waves) > 1 else ""
    )
    text.append(f"{number:>4} ", style="bold").append(f"{when}\n", style="dim")
    kinds: dict[tuple[str, ...], list[Step]] = {}  # steps that read the same but for the names
    for step in (step for wave in waves for step in wave.steps):
        kinds.setdefault((step.do, step.kind, _details(step)), []).append(step)
    for steps in kinds.values():
        text.append(f"       {_line(steps, everything=everything)}\n", style=_STYLES.get(steps[0].do, ""))


def _details(step: Step) -> str:
    """Return the changes and their reasons.

    The planner's own text is added where the step does not say everything: that of claims names each pod.
    """
    is_complete = step.kind == CLAIM.kind or (step.kind == POD.kind and step.do != "delete")
    details = [_changes(step.changes), step.why, "" if is_complete else step.cause]
    return "; ".join(filter(None, [*details, f"REFUSED: {step.refused}" if step.refused else ""]))


def _when(wave: Wave, *, everything: bool) -> str:
    parts: list[str] = []
    if wave.ready:
        parts.append(f"{_names(wave.ready, everything)} {'serve' if len(wave.ready) > 1 else 'serves'}")
    if wave.gone:
        parts.append(f"{_names(wave.gone, everything)} {'are' if len(wave.gone) > 1 else 'is'} gone")
    if wave.answered:
        parts.append(f"{_names(wave.answered, everything)} {'have' if len(wave.answered) > 1 else 'has'} pulled")
    if wave.ended:
        parts.append(f"{_names(wave.ended, everything)} {'have' if len(wave.ended) > 1 else 'has'} ended")
    when = f"when {' and '.join(parts)}" if parts else ""
    later = f"{span(wave.seconds)} later" if wave.seconds else ""
    return ", ".join(filter(None, (when, later))) or "at once"


def _line(steps: Sequence[Step], *, everything: bool) -> str:
    step = steps[0]
    noun = _NOUNS.get(step.kind, step.kind)
    what = f"{len(steps)} {noun}s: " if len(steps) > 1 else "" if step.alias else f"{noun} "
    line = f"{_VERBS.get(step.do, step.do)} {what}{_names([_name(one) for one in steps], everything)}"
    details = _details(step)
    return f"{line}: {details}" if details else line


def _name(step: Step) -> str:
    if step.kind == POD.kind:
        name = step.name or step.alias
        return f"{name} ({step.node})" if step.node else name
    return step.alias or (f"{step.namespace}/{step.name}" if step.elsewhere else step.name)


def _names(names: Sequence[str], everything: bool) -> str:
    if everything or len(names) <= NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _changes(changes: Sequence[ValueChange]) -> str:
    texts = (f"{one.what} {_values(one.before, one.after)}" if one.before or one.after else one.what for one in changes)
    return ", ".join(texts)


def _values(before: object, after: object) -> str:
    return f"{_plain(before)} → {_plain(after)}"


def _plain(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _append_end(text: Text, report: Report) -> Text:
    for reason in report.reasons:
        text.append("   → ", style="green" if reason.state is State.DONE else "yellow")
        text.append(reason.sentence).append(f"  [{reason.code}]\n", style="dim")
    if report.waves:
        text.append(f"  {_totals(report)}\n")
    for note in report.notes:
        text.append(f"  note: {note}\n", style="dim")
    return text


def _totals(report: Report) -> str:
    totals = report.totals
    counts = {
        "updated in place": totals.updated_in_place,
        "recreated": totals.recreated,
        "created": totals.created,
        "deleted": totals.deleted,
        "created by Kubernetes": totals.created_by_kubernetes,
        "deleted by Kubernetes": totals.deleted_by_kubernetes,
    }
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    line = f"pods: {words}; {totals.writes} writes" if words else f"{totals.writes} writes"
    if (serving := report.serving) is None:
        return line
    limit = "" if serving.max_unavailable is None else f" (maxUnavailable {serving.max_unavailable})"
    return f"{line}; serving: {serving.now} now, {serving.lowest} at the lowest{limit}, {serving.end} in the end"
