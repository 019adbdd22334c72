"""A workload as it was at a moment of its timeline: its revisions and pods, by what was written until then."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from flotilla_console import paths
from flotilla_console.blocks.types import (
    AnyBlock,
    Badge,
    Bar,
    Choice,
    Column,
    Heading,
    Link,
    Mono,
    Part,
    Row,
    Slider,
    Span,
    Table,
    spans,
)
from flotilla_console.model.workload import Workload
from flotilla_console.page import PageRequest
from flotilla_console.pages.parts import LIMIT, clock_text, commas, outcome_of, whole_table
from flotilla_console.story.lives import Life
from flotilla_console.story.story import Story
from flotilla_console.story.tree import LABELS, TONES, Branch, tree
from flotilla_insight.published import Act

MOST_MOMENTS = 200
"""Moments of the slider; of more, evenly many are left out."""

MOST_NAMES = 30


def moment_of(request: PageRequest, story: Story) -> datetime:
    """Return the moment of the slider: the end, or the one that was asked for."""
    try:
        asked = datetime.fromtimestamp(float(request.query.get("at", "")), UTC)
    except (ValueError, OverflowError, OSError):
        return story.end
    return min(max(asked, story.start), story.end)


def tree_blocks(story: Story, shown: Sequence[Life], moment: datetime) -> Iterator[AnyBlock]:
    """Yield the slider, and the revisions with their pods at the moment."""
    yield Heading("As it was", id="as-it-was")
    choices = _choices(story)
    value = max((one.value for one in choices if float(one.value) <= moment.timestamp() + 0.001), key=float, default="")
    yield Slider("at", "Moment", choices, value or choices[0].value)
    branches = tree(shown, moment)
    rows = tuple(_branch(branch) for branch in branches)
    columns = (("revision", "Revision"), ("pods", "Pods"), ("names", "Names"))
    yield whole_table("tree", f"Revisions and pods at {clock_text(moment)}", columns, rows)


def _choices(story: Story) -> tuple[Choice, ...]:
    """Return the moments at which something happened, and the end."""
    found = {story.start: "the change", **{write.at: _about(write) for write in story.writes}, story.end: "the end"}
    ordered = sorted(found.items())
    step = -(-len(ordered) // MOST_MOMENTS)
    kept = ordered[::-1][::step][::-1]
    return tuple(Choice(f"{at.timestamp():.3f}", f"{clock_text(at)} {label}") for at, label in kept)


def _about(write: Act) -> str:
    return f"{write.action} {write.kind} {write.name}"


def _branch(branch: Branch) -> Row:
    parts = tuple(Part(LABELS[state], count, TONES[state]) for state, count in branch.counts.items())
    names: list[Span | str] = [f"{name} ({LABELS[state]})" for name, state in branch.pods[:MOST_NAMES]]
    more = len(branch.pods) - len(names)
    return Row(
        key=branch.revision or "-",
        cells=(
            spans(Mono(branch.revision)) if branch.revision else spans("an earlier one"),
            spans(Bar("", parts, len(branch.pods))),
            (*commas(names), *spans(f" and {more} more" if more else "")),
        ),
    )


def pods_table(one: Workload, window: Sequence[Life], story: Story, moment: datetime, total: int, offset: int) -> Table:
    """Return the pods of the lanes as a table, which also pages through them."""
    return Table(
        id="pods",
        caption=f"Pods at {clock_text(moment)}",
        columns=(
            Column("name", "Pod"),
            Column("state", "State"),
            Column("revision", "Revision"),
            Column("writes", "Writes", numeric=True),
            Column("last", "Last write"),
            Column("why", "Waits for"),
        ),
        rows=tuple(_pod_row(one, life, story, moment) for life in window),
        total=total,
        offset=offset,
        limit=LIMIT,
    )


def _pod_row(one: Workload, life: Life, story: Story, moment: datetime) -> Row:
    phase = life.at(moment)
    writes = [write for write in life.writes if story.start <= write.at <= moment]
    last = writes[-1] if writes else None
    name = Link(life.name, paths.pod(one.namespace, life.name)) if life.now is not None else life.name
    return Row(
        key=life.name,
        cells=(
            spans(name),
            spans(Badge(LABELS[phase.state], TONES[phase.state]) if phase is not None else "does not exist yet"),
            spans(Mono(phase.revision)) if phase is not None and phase.revision else (),
            spans(str(len(writes))),
            outcome_of(last) if last is not None else (),
            spans(life.now.waits_for if life.now is not None else ""),
        ),
        tone=TONES[phase.state] if phase is not None else None,
    )
