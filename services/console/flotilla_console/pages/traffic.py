"""The messages on the bus about an object, as a table."""

from collections.abc import Iterator
from typing import Protocol

from flotilla_common.api.resources import Resource
from flotilla_console.blocks.types import AnyBlock, Mono, Notice, Paragraph, Row, spans
from flotilla_console.pages.parts import age, whole_table
from flotilla_console.story.traffic import MOST_LINES, Traffic
from flotilla_insight.traffic import Line

_COLUMNS = (
    ("at", "Published"),
    ("stream", "Subject"),
    ("service", "By"),
    ("what", "What"),
    ("cause", "Cause"),
    ("outcome", "Outcome"),
)


class BusReader(Protocol):
    """Reads messages about an object from the bus."""

    async def read(self, resource: Resource, namespace: str, name: str) -> Traffic:
        """Return the messages. Never raises for a bus that fails."""
        ...


def traffic_blocks(traffic: Traffic) -> Iterator[AnyBlock]:
    """Yield the table, and what is not in it."""
    if traffic.error:
        yield Notice("warn", spans(f"Not all is shown: {traffic.error}."))
    if not traffic.lines:
        yield Paragraph(spans("The bus has no messages about it."))
        return
    shown = traffic.lines[:MOST_LINES]
    older = traffic.cut + len(traffic.lines) - len(shown)
    cut = f", without {older} older ones" if older else ""
    rows = tuple(_row(str(len(traffic.lines) - index), line) for index, line in enumerate(shown))
    yield whole_table("traffic", f"Messages on the bus{cut}", _COLUMNS, rows)


def _row(key: str, line: Line) -> Row:
    failed = line.stream == "act" and line.message.get("outcome") != "Ok"
    return Row(
        key=key,
        cells=(
            age(line.at.timestamp()),
            spans(Mono(f"{line.stream}.v1")),
            spans(line.service),
            spans(line.what),
            spans(line.cause),
            spans(line.outcome),
        ),
        tone="bad" if failed else None,
    )
