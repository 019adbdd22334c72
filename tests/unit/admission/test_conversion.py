"""Rules of all conversions: nothing is lost (docs/adr/0034), and other versions are errors."""

import copy
import random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.versions import ANNOTATION, V1ALPHA1, V1BETA1
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


CONVERTED = pytest.mark.parametrize(
    "kind", [kind for kind in BOTH if kind.rules().convert], ids=lambda kind: kind.singular
)


def bare(kind: Kind, version: str, **members: object) -> Json:
    """Return an object without a spec."""
    return {"apiVersion": version, "kind": kind.resource.kind, **members}


def between(kind: Kind, document: Json, version: str) -> Json:
    """Return the object in another version."""
    convert = kind.rules().convert
    assert convert is not None
    return convert(document, version)


@CONVERTED
@pytest.mark.parametrize("rest", [{}, {"metadata": {"name": "a"}}, {"status": {"replicas": 3}}])
@pytest.mark.parametrize(("one", "other"), [("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1")])
def test_an_object_without_spec_only_changes_its_version(kind: Kind, rest: Json, one: str, other: str) -> None:
    one, other = f"{kind.resource.group}/{one}", f"{kind.resource.group}/{other}"
    assert between(kind, bare(kind, one, **rest), other) == bare(kind, other, **rest)


@CONVERTED
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (V1BETA1, V1BETA1),
        (V1ALPHA1, "apps.kruise.io/v2"),
        (V1BETA1, "apps.kruise.io/v1"),
        ("", V1BETA1),
        ("apps/v1", V1BETA1),
    ],
)
def test_other_versions_are_errors(kind: Kind, one: str, other: str) -> None:
    with pytest.raises(ValueError, match=f"cannot convert {kind.resource.kind}"):
        between(kind, bare(kind, one, metadata={"name": "a"}, spec={}), other)


@CONVERTED
def test_the_stored_version_is_left_alone(kind: Kind) -> None:
    stored = bare(kind, f"{kind.resource.group}/v1beta1", metadata={"name": "a"}, spec={})
    assert cast("Any", kind.rules().convert).__self__.to_hub(stored) is stored
