"""A step that is over, as traces show it, and who takes it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import msgspec

from flotilla_common.tracing.context import SpanContext


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, when (aware times), below which span, and whether it failed."""

    name: str  # few different ones: "create Pod", never an object's name
    context: SpanContext
    parent: SpanContext | None  # None: the root of its trace
    start: datetime
    end: datetime
    attributes: Mapping[str, str | int | float | list[str]] = {}
    error: str = ""


class Tracer(Protocol):
    """Takes the spans of one process. Never blocks, never fails: what cannot be exported is lost."""

    def record(self, span: Span) -> None: ...

    def close(self) -> None:
        """Export what is left; may take seconds."""
        ...
