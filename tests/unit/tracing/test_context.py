"""Names of traces: computed, not handed on, and alike in every process."""

import re

import pytest

from flotilla_common.tracing.context import SpanContext, carried, change, current

UID = "0b4a1f5e-7d32-4d6a-9f3e-2f1f3c5b7a90"


def test_a_change_has_one_trace_wherever_it_is_computed() -> None:
    assert change(UID, 7) == change(UID, 7)
    assert change(UID, 7).trace_id != change(UID, 8).trace_id
    assert change(UID, 7).trace_id != change(UID.replace("0b", "0c"), 7).trace_id


@pytest.mark.parametrize(
    "context", [change(UID, 7), change("", 0), change(UID, 7).child("pass", "x"), change(UID, 7).version("561")]
)
def test_traceparents_are_as_the_w3c_writes_them(context: SpanContext) -> None:
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", context.traceparent)


def test_children_stay_in_the_trace_and_differ_by_every_word() -> None:
    root = change(UID, 7)
    children = [root.child("a", "b"), root.child("ab"), root.child("a"), root.child("a").child("b"), root]
    assert {child.trace_id for child in children} == {root.trace_id}
    assert len({child.span_id for child in children}) == len(children)


def test_a_version_is_readable_in_its_span() -> None:
    assert change(UID, 7).version("561").span_id == "0000000000000231"


@pytest.mark.parametrize("odd", ["", "0", "abc", str(1 << 64)])
def test_a_version_that_is_no_number_has_a_span_all_the_same(odd: str) -> None:
    assert re.fullmatch(r"(?!0{16})[0-9a-f]{16}", change(UID, 7).version(odd).span_id)


def test_requests_carry_the_span_that_they_are_made_within() -> None:
    outer, inner = change(UID, 7), change(UID, 7).child("write")
    with carried(outer):
        with carried(inner):
            assert current() == inner.traceparent
        assert current() == outer.traceparent
    assert current() == ""
