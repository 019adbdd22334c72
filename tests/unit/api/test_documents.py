"""Merge patches between documents."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.documents import merge, merge_patch

SCALARS = st.integers() | st.text(max_size=3) | st.booleans() | st.lists(st.integers(), max_size=2)
KEYS = st.sampled_from(["a", "b", "c"])
DOCUMENTS = st.dictionaries(KEYS, st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=3)))


@given(DOCUMENTS, DOCUMENTS)
def test_a_merge_patch_leads_from_one_document_to_the_other(before: dict[str, Any], after: dict[str, Any]):
    patch = merge_patch(before, after)
    assert merge(before, patch) == after
    assert not patch or before != after


def test_equal_documents_need_no_patch():
    assert merge_patch({"a": {"b": 1}}, {"a": {"b": 1}}) == {}
