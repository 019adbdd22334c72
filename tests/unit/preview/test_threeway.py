"""The patch that `kubectl apply` computes from the last applied, the new and the live object."""

from copy import deepcopy

import pytest

from flotilla_common.api.documents import Json
from flotilla_insight.preview.dryrun import LAST_APPLIED, annotated, last_applied, three_way


@pytest.mark.parametrize(
    ("original", "modified", "live", "patch"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}, id="a value changes"),
        pytest.param({"a": 1}, {"a": 1}, {"a": 1, "b": 2}, {}, id="defaults stay"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}, {"b": None}, id="what was applied is taken away"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, {"a": 1}, {"b": None}, id="even if it is gone already"),
        pytest.param({"a": 1}, {"a": 1}, {"a": 3}, {"a": 1}, id="what others changed is set again"),
        pytest.param({}, {"a": 1}, {"a": 1, "b": 2}, {}, id="an object that nobody applied keeps everything"),
        pytest.param({"s": {"b": 1}}, {"s": {}}, {"s": {"b": 1, "c": 1}}, {"s": {"b": None}}, id="in depth"),
        pytest.param({"s": {"a": 1}}, {}, {"s": {"a": 1, "b": 2}}, {"s": None}, id="a whole member"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, {"l": [1, 2]}, {"l": [1]}, id="lists are replaced"),
        pytest.param({"l": [{}]}, {"l": [{}]}, {"l": [{"y": 2}]}, {"l": [{}]}, id="lists lose defaults"),
        pytest.param({}, {"s": {}}, {}, {"s": {}}, id="an empty object is a value"),
        pytest.param({}, {"a": None}, {"a": 1}, {"a": None}, id="null takes away"),
        pytest.param({"a": {"b": 1}}, {"a": 2}, {"a": {"b": 1}}, {"a": 2}, id="another type"),
    ],
)  # fmt: skip
def test_the_patch(original: Json, modified: Json, live: Json, patch: Json):
    before = deepcopy([original, modified, live])
    assert repr(three_way(original, modified, live)) == repr(patch)
    assert [original, modified, live] == before


def test_a_manifest_remembers_itself():
    manifest: Json = {"kind": "CloneSet", "metadata": {"name": "a<b", "annotations": {LAST_APPLIED: "old", "x": "y"}}}
    written = annotated(manifest)
    remembered = {"kind": "CloneSet", "metadata": {"name": "a<b", "annotations": {"x": "y"}}}
    assert last_applied(written) == remembered
    assert written["metadata"]["annotations"][LAST_APPLIED] == (
        '{"kind":"CloneSet","metadata":{"annotations":{"x":"y"},"name":"a\\u003cb"}}\n'
    )


@pytest.mark.parametrize("annotation", ["", "{", "[]"])
def test_an_annotation_that_cannot_be_read_counts_as_none(annotation: str):
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: annotation}}}) == {}
