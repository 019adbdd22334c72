"""An object that a client of one version reads and writes back keeps the fields of the other (docs/adr/0034)."""

import copy
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.preserved import ANNOTATION
from tests.support.random_objects import BOTH, lost, lost_in_storage, pruned, random_object
from tests.testkit.documents import Json


def converted(kind: Kind, document: Json, version: str) -> Json:
    """Return what a client of the version gets of the document."""
    convert = kind.rules().convert
    wanted = f"{kind.resource.group}/{version}"
    return pruned(kind, convert(document, wanted) if convert else copy.deepcopy(document) | {"apiVersion": wanted})


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.singular)
@settings(max_examples=30)
@given(dice=st.randoms(use_true_random=False))
def test_v1beta1_survives_a_client_of_v1alpha1(kind: Kind, dice: random.Random) -> None:
    stored = random_object(kind, "v1beta1", dice)
    before = copy.deepcopy(stored)
    view = converted(kind, stored, "v1alpha1")
    view["metadata"].setdefault("labels", {})["changed"] = "yes"
    after = converted(kind, view, "v1beta1")
    assert not lost(stored, after)
    assert after["metadata"]["labels"]["changed"] == "yes"
    assert ANNOTATION not in after["metadata"].get("annotations", {})
    assert stored == before


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.singular)
@settings(max_examples=30)
@given(dice=st.randoms(use_true_random=False))
def test_v1alpha1_survives_storage(kind: Kind, dice: random.Random) -> None:
    written = random_object(kind, "v1alpha1", dice)
    read = converted(kind, converted(kind, written, "v1beta1"), "v1alpha1")
    assert not lost_in_storage(kind, written, read)
