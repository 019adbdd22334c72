"""Our JSON patches, applied by an independent implementation, give what we wanted."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.admission.review import Operation, operations

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b~/c"])
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "c/d", "~", ""]), inner),
    max_leaves=12,
)


@given(documents, documents)
def test_applying_the_difference_gives_the_target(before: Any, after: Any) -> None:
    patch = [operation.document() for operation in operations(before, after)]
    applied = jsonpatch.apply_patch(copy.deepcopy(before), patch) if patch else before
    assert applied == after
    assert repr(applied) == repr(after) or isinstance(after, dict | list)


@given(documents)
def test_equal_documents_have_no_difference(document: Any) -> None:
    assert operations(document, copy.deepcopy(document)) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"a": None}, [Operation("add", "/a", None)], id="null is a value"),
        pytest.param({"a": 1}, {"a": True}, [Operation("replace", "/a", True)], id="true is not 1"),
        pytest.param(
            {"l": [{"i": 1}, {"i": 2}]},
            {"l": [{"i": 1}, {"i": 3}]},
            [Operation("replace", "/l/1/i", 3)],
            id="one image",
        ),
        pytest.param(
            {"l": [1]}, {"l": [1, 2, 3]}, [Operation("add", "/l/1", 2), Operation("add", "/l/2", 3)], id="grow"
        ),
        pytest.param(
            {"l": [1, 2, 3]}, {"l": [1]}, [Operation("remove", "/l/2"), Operation("remove", "/l/1")], id="cut"
        ),
        pytest.param({"a/b~": 1}, {}, [Operation("remove", "/a~1b~0")], id="escapes"),
    ],
)
def test_smallest_difference(before: Any, after: Any, expected: list[Operation]) -> None:
    assert operations(before, after) == expected
