"""Our spans as OpenTelemetry has them."""

from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.trace import StatusCode

from flotilla_common.tracing.context import Span, change
from flotilla_common.tracing.otlp import traces_url
from tests.unit.tracing.collecting import InMemory

START = datetime(2026, 1, 1, microsecond=123, tzinfo=UTC)
ROOT = change("u", 1)
WRITE = Span(
    name="patch Pod",
    context=ROOT.child("w"),
    parent=ROOT,
    start=START,
    end=START + timedelta(milliseconds=5),
    attributes={"flotilla.cause": "scale up", "flotilla.reasons": ["a", "b"]},
)


def test_a_span_arrives_with_its_place_in_the_trace_its_times_and_attributes() -> None:
    memory = InMemory()
    memory.tracer.record(WRITE)
    (span,) = memory.finished
    assert f"{span.context.trace_id:032x}" == ROOT.trace_id
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == ROOT.span_id
    assert (span.end_time or 0) - (span.start_time or 0) == 5_000_000
    assert span.start_time == 1_767_225_600_000_123_000
    assert dict(span.attributes or {}) == {"flotilla.cause": "scale up", "flotilla.reasons": ["a", "b"]}
    assert span.resource.attributes["service.name"] == "flotilla-test"
    assert span.status.status_code is StatusCode.UNSET


def test_a_root_has_no_parent_and_a_failure_says_why() -> None:
    memory = InMemory()
    memory.tracer.record(Span(name="x", context=ROOT, parent=None, start=START, end=START, error="exceeded quota"))
    (span,) = memory.finished
    assert span.parent is None
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "exceeded quota")


@pytest.mark.parametrize("given", ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"])
def test_the_address_may_be_the_base_or_complete(given: str) -> None:
    assert traces_url(given) == "http://c:4318/v1/traces"
