"""Names of traces and spans, in the terms of W3C Trace Context, a step that is over, and who takes it.

A change of a spec is the root of its trace. Below it stands what follows: that it was published (the span is the
version), the passes that planned it (the span is the pass), and in each pass its writes.
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
    """One span of one trace: 32 and 16 lower-case hexadecimal digits, none of them all zero."""

    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        """The header's value: version 00, sampled."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def child(self, *words: str) -> "SpanContext":
        """The span below this one that `words` name."""
        return SpanContext(self.trace_id, _digits(_SPAN_BYTES, self.span_id, *words))

    def version(self, resource_version: str) -> "SpanContext":
        """The span of a version of the object, readable in its last digits. Versions of apiservers are numbers."""
        if resource_version.isdigit() and 0 < int(resource_version) < 1 << 64:
            return SpanContext(self.trace_id, f"{int(resource_version):016x}")
        return self.child(resource_version)


def change(uid: str, generation: int) -> SpanContext:
    """The root span of what follows from an object's `generation`, the change that made it."""
    trace = _digits(_TRACE_BYTES, uid, str(generation))
    return SpanContext(trace, _digits(_SPAN_BYTES, trace))


_current: ContextVar[str] = ContextVar("traceparent", default="")


@contextmanager
def carried(span: SpanContext) -> Generator[None]:
    """Requests to the apiserver made within carry the span, so that its own traces join ours."""
    token = _current.set(span.traceparent)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> str:
    """The traceparent that requests carry; empty outside of `carried`."""
    return _current.get()


def _digits(size: int, *words: str) -> str:
    return blake2b("\0".join(words).encode(), digest_size=size).hexdigest()


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
