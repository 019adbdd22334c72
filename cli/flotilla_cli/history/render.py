"""Renders a history as lines for people."""

from collections.abc import Iterable
from datetime import datetime

from rich.text import Text

from flotilla_insight.history.steps import TimelineStep
from flotilla_insight.history.timeline import GenerationTotals, GenerationView, Timeline
from flotilla_insight.published import Act

LINES = 30
"""Number of steps of a generation that are shown; of more, those in the middle are left out."""

LONGEST = 180
"""Number of characters of a step that are shown."""

_STYLES = {"decision": "cyan", "write": "default", "wait": "yellow", "bad": "red", "note": "default", "end": "green"}


def render(timeline: Timeline, *, everything: bool) -> Text:
    """Render all generations; `everything`: each step in full, and each write."""
    place = f"{timeline.namespace}/{timeline.name}" if timeline.namespace else timeline.name
    text = Text(f"{timeline.kind} {place}\n", style="bold")
    for note in timeline.notes:
        text.append(f"{note}\n", style="yellow")
    for view in timeline.chapters:
        _generation(text, view, everything=everything)
    return text


def _generation(text: Text, view: GenerationView, *, everything: bool) -> None:
    moment = f"{view.began.astimezone():%Y-%m-%d %H:%M:%S.%f}"[:-3]
    generation = f"generation {view.generation} " if view.generation else ""
    text.append(f"\n{moment}  {generation}{view.title}\n", style="bold")
    for change in view.changes:
        text.append(f"    {change}\n", style="default")
    steps = sorted([*view.steps, *map(_step, view.writes)], key=lambda step: step.at) if everything else view.steps
    for step in _shown(steps, everything=everything):
        if isinstance(step, str):
            text.append(f"{'':>10}  {step}\n", style="dim")
            continue
        text.append(f"{_offset(step.at, view.began):>10}  ", style="dim")
        words = step.text if everything or len(step.text) <= LONGEST else f"{step.text[: LONGEST - 1]}…"
        text.append(f"{words}\n", style=_STYLES[step.tone])
    for line in _totals(view.totals) if view.totals else ():
        text.append(f"{'':>10}  {line}\n", style="bold")


def _step(write: Act) -> TimelineStep:
    said = f": {write.message}" if write.message else ""
    what = f"{write.action} {write.subresource}".rstrip()
    outcome = f"{write.outcome} {write.latency_ms:g}ms{said}"
    text = f"{write.service}/{write.replica}  {what} {write.kind} {write.name}  {write.cause} → {outcome}"
    return TimelineStep(at=write.at, tone="note" if write.ok else "bad", text=text)


def _shown(steps: list[TimelineStep], *, everything: bool) -> Iterable[TimelineStep | str]:
    if everything or len(steps) <= LINES:
        return steps
    half = LINES // 2
    return [*steps[:half], f"… {len(steps) - 2 * half} more steps (--all)", *steps[-half:]]


def _offset(at: datetime, began: datetime) -> str:
    seconds = (at - began).total_seconds()
    if seconds < 100:
        return f"{seconds:+.2f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"+{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _totals(totals: GenerationTotals) -> Iterable[str]:
    each = f", {totals.pod_writes / totals.pods:.1f} for each of {totals.pods} pods" if totals.pods else ""
    refused = f", {totals.refused} refused" if totals.refused else ""
    yield f"{totals.seconds:.1f} s; {totals.writes} writes{each}{refused}; {totals.decisions} decisions"
    if totals.slowest:
        yield (
            f"a pod took {totals.typical_seconds:.1f} s; the slowest was {totals.slowest} with "
            f"{totals.slowest_seconds:.1f} s, the last one {totals.last}"
        )
