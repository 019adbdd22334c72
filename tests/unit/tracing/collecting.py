"""A tracer that keeps what it is given, and the spans as OpenTelemetry's own exporter has them."""

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from flotilla_common.tracing.context import Span
from flotilla_common.tracing.otlp import OtlpTracer


class Collected:
    """Our spans, as they were recorded."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def record(self, span: Span) -> None:
        self.spans.append(span)

    def close(self) -> None:
        pass

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


class InMemory:
    """A tracer whose spans end in OpenTelemetry's in-memory exporter."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtlpTracer(SimpleSpanProcessor(self._exporter), {"service.name": "flotilla-test"})

    @property
    def finished(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()
