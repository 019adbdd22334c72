"""Computes the ids of traces and spans (W3C Trace Context), and defines `Span` and `Tracer`.

A change of a spec is the root of its trace. Its children are: its publication (the span is the version), the passes
that planned it (the span is the pass), and below each pass its writes.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from hashlib import blake2b
from typing import Protocol

import msgspec

_SPAN_BYTES, _TRACE_BYTES = 8, 16


class SpanContext(msgspec.Struct, frozen=True):
    """One span of one trace: 32 and 16 lower-case hexadecimal digits, not all zero."""

    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        """Return the value of the header `traceparent`: version 00, sampled."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def child(self, *words: str) -> "SpanContext":
        """Return the child span that `words` identify."""
        return SpanContext(self.trace_id, _digits(_SPAN_BYTES, self.span_id, *words))

    def version(self, resource_version: str) -> "SpanContext":
        """Return the span of a version of the object, readable in its last digits if the version is a number."""
        if resource_version.isdigit() and 0 < int(resource_version) < 1 << 64:
            return SpanContext(self.trace_id, f"{int(resource_version):016x}")
        return self.child(resource_version)


def change(uid: str, generation: int) -> SpanContext:
    """Return the root span of the change that created this generation of an object."""
    trace = _digits(_TRACE_BYTES, uid, str(generation))
    return SpanContext(trace, _digits(_SPAN_BYTES, trace))


_current: ContextVar[str] = ContextVar("traceparent", default="")


@contextmanager
def carried(span: SpanContext) -> Generator[None]:
    """Send the span along with apiserver requests made within, so that the apiserver's traces join ours."""
    token = _current.set(span.traceparent)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> str:
    """Return the traceparent to send with requests; empty outside of `carried`."""
    return _current.get()


def _digits(size: int, *words: str) -> str:
    return blake2b("\0".join(words).encode(), digest_size=size).hexdigest()


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A finished step: its name, times (aware), parent, attributes, and error if it failed."""

    name: str  # of low cardinality: "create Pod", never an object's name
    context: SpanContext
    parent: SpanContext | None  # None: the root of its trace
    start: datetime
    end: datetime
    attributes: Mapping[str, str | int | float | list[str]] = {}
    error: str = ""


class Tracer(Protocol):
    """Takes the spans of one process. Never blocks or fails: spans that cannot be exported are lost."""

    def record(self, span: Span) -> None: ...

    def close(self) -> None:
        """Export the remaining spans; may take seconds."""
        ...
