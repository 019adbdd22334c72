"""Exports spans to a collector, by OpenTelemetry's own SDK and OTLP over HTTP.

The SDK batches in its own thread and drops spans that a collector does not accept in time. It is imported only if a
collector is configured, as it takes 12 MiB. Headers, certificates, timeouts and compression come from the standard
variables (OTEL_EXPORTER_OTLP_HEADERS, …_CERTIFICATE, …).
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext as OtelContext
from opentelemetry.trace import SpanKind, Status, StatusCode, TraceFlags

from flotilla_common.tracing.context import Span, SpanContext

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_SCOPE = InstrumentationScope("flotilla")
_PATH = "/v1/traces"


def traces_url(endpoint: str) -> str:
    """Return the URL for traces. `endpoint` is the collector's base, `http://collector:4318`, or that URL itself."""
    base = endpoint.rstrip("/")
    return base if base.endswith(_PATH) else base + _PATH


class OtlpTracer:
    """Exports the spans of one service replica."""

    def __init__(self, processor: SpanProcessor, about: Mapping[str, str]) -> None:
        """Create a tracer; `about` holds the attributes of the process (`service.name`, …)."""
        self._processor = processor
        self._resource = Resource.create(dict(about))

    @classmethod
    def to(cls, endpoint: str, about: Mapping[str, str]) -> "OtlpTracer":
        """Return a tracer that exports in batches to the collector at this base address."""
        return cls(BatchSpanProcessor(OTLPSpanExporter(endpoint=traces_url(endpoint))), about)

    def record(self, span: Span) -> None:
        self._processor.on_end(
            ReadableSpan(
                name=span.name,
                context=_context(span.context),
                parent=None if span.parent is None else _context(span.parent),
                resource=self._resource,
                attributes=span.attributes,
                kind=SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
                start_time=_nanoseconds(span.start),
                end_time=_nanoseconds(span.end),
                instrumentation_scope=_SCOPE,
            )
        )

    def close(self) -> None:
        self._processor.shutdown()


def _context(context: SpanContext) -> OtelContext:
    return OtelContext(int(context.trace_id, 16), int(context.span_id, 16), is_remote=False, trace_flags=_SAMPLED)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND * 1000
