"""Parts that several pages share: links, badges, bars, and windows of tables."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from flotilla_common.api.meta import Condition
from flotilla_console import paths
from flotilla_console.blocks.types import (
    Age,
    Badge,
    Bar,
    Column,
    Fact,
    Link,
    Mono,
    Part,
    Row,
    Span,
    Spans,
    Table,
    Text,
    Tone,
    spans,
)
from flotilla_console.model.reading import State
from flotilla_console.model.workload import Workload
from flotilla_insight.published import Act

LIMIT = 100
"""Rows of a window."""

TONES: Mapping[State, Tone] = {"blocked": "bad", "held": "warn", "busy": "busy", "fine": "ok"}

_TRUTHS: Mapping[str, Tone] = {"True": "ok", "False": "warn"}


def link(one: Workload) -> Link:
    """Return a link to the page of a workload."""
    return Link(one.name, paths.workload(one.group, one.plural, one.namespace, one.name))


def kind_word(one: Workload) -> str:
    """Return the kind, with its group where two groups have kinds of the same name."""
    kind = one.kind.resource.kind
    return f"{kind} ({one.group})" if kind in ("StatefulSet", "DaemonSet") else kind


def state_badge(one: Workload) -> Badge:
    """Return the state of a workload."""
    return Badge(one.verdict.state, TONES[one.verdict.state])


def pods_bar(one: Workload) -> Bar:
    """Return the pods of a workload, or what else it counts: ready, not ready, failed and missing ones."""
    numbers, noun = one.reading.numbers, one.reading.noun
    ready = min(numbers.ready, numbers.total)
    failed = min(numbers.failed, numbers.total - ready)
    word = "ready" if one.reading.observed is not None else "done"
    parts = (
        Part(word, ready, "ok"),
        Part("failed", failed, "bad"),
        Part(f"not {word}", numbers.total - ready - failed, "busy"),
        Part("missing", numbers.desired - numbers.total, "idle"),
    )
    label = f"{numbers.ready} of {numbers.desired} {noun}s {word}"
    return Bar(label, tuple(part for part in parts if part.count > 0), max(numbers.desired, numbers.total))


def progress(one: Workload) -> Spans:
    """Return how many pods are updated, and what limits the update; empty for a kind without revisions."""
    numbers = one.reading.numbers
    if numbers.updated is None:
        return ()
    partition = f", partition {one.reading.partition}" if one.reading.partition not in ("", "0", "0%") else ""
    paused = ", paused" if one.reading.paused else ""
    revision = one.reading.update_revision.rpartition("-")[2]
    text = f"{numbers.updated} of {numbers.expected}{partition}{paused}"
    return spans(text, *((" ", Mono(revision)) if revision else ()))


def age(moment: float) -> Spans:
    """Return the time since a moment; empty if it is not known."""
    return spans(Age(moment)) if moment else ()


def ago(moment: float) -> Spans:
    """Return the time since a moment, as a sentence has it; empty if it is not known."""
    return spans(Age(moment), " ago") if moment else ()


def clock_text(moment: datetime) -> str:
    """Format a moment to the millisecond, in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}.{moment.microsecond // 1000:03d}"


def outcome_of(write: Act) -> Spans:
    """Return what was written and why, and how it ended."""
    text = f"{write.action} {write.subresource}".rstrip()
    return spans(f"{text}, {write.cause} ", Badge(write.outcome or "no outcome", "ok" if write.ok else "bad"))


def facts(*items: tuple[str, Span | Spans | str]) -> tuple[Fact, ...]:
    """Return facts; those without a value are left out."""
    found = ((label, _line(value)) for label, value in items)
    return tuple(Fact(label, line) for label, line in found if line)


def _line(value: Span | Spans | str) -> Spans:
    if isinstance(value, tuple):
        return value
    return spans(value)


def commas(pieces: Iterable[Span | str]) -> Spans:
    """Return the pieces with commas between them."""
    found: list[Span] = []
    for piece in pieces:
        if found:
            found.append(Text(", "))
        found.append(Text(piece) if isinstance(piece, str) else piece)
    return tuple(found)


def conditions_table(conditions: Iterable[Condition]) -> Table:
    """Return the conditions of an object."""
    rows = tuple(
        Row(
            key=f"{index}/{one.type}",
            cells=(
                spans(one.type),
                spans(Badge(one.status or "Unknown", _TRUTHS.get(one.status, "idle"))),
                age(one.last_transition_time.timestamp() if one.last_transition_time is not None else 0.0),
                spans(one.reason),
                spans(one.message),
            ),
        )
        for index, one in enumerate(conditions)
    )
    columns = (
        ("type", "Condition"),
        ("status", "Status"),
        ("since", "Since"),
        ("reason", "Reason"),
        ("message", "Message"),
    )
    return whole_table("conditions", "Conditions", columns, rows)


def whole_table(identity: str, caption: str, columns: Iterable[tuple[str, str]], rows: tuple[Row, ...]) -> Table:
    """Return a table with all its rows."""
    return Table(
        id=identity,
        caption=caption,
        columns=tuple(Column(name, label) for name, label in columns),
        rows=rows,
        total=len(rows),
        limit=max(len(rows), 1),
    )


def sorting(query: Mapping[str, str], columns: Iterable[str], default: str) -> tuple[str, bool]:
    """Return the column to sort by, and whether in descending order; `default` for an unknown column."""
    asked = query.get("sort", "")
    column = asked.removeprefix("-")
    return (column, asked.startswith("-")) if column in columns else (default, False)


def offset_of(query: Mapping[str, str], total: int) -> int:
    """Return the first row of the window: that of the last window for an offset beyond the end."""
    asked = query.get("offset", "")
    offset = int(asked) if asked.isdecimal() and len(asked) < 10 else 0
    return min(offset, max(total - 1, 0)) // LIMIT * LIMIT


def bus_link(subject: str) -> Link:
    """Return a link to the traffic on the bus under a subject."""
    return Link("traffic on the bus", paths.path("bus", query={"subject": subject}))
