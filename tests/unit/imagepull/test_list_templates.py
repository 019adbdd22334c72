"""Equality of two templates of a list's jobs (imagepull.md §7)."""

from typing import Any

import pytest

from flotilla_jobs.imagelistpull.plan import template_hash, template_of
from tests.testkit.documents import Json
from tests.unit.imagepull.build import list_job, status_of
from tests.unit.imagepull.test_list_examples import child, passed

NAMED = {"names": ["n1"]}


def digits(**spec: Any) -> str:
    return template_hash(list_job("a", **spec).spec)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"selector": NAMED}, id="selector"),
        pytest.param({"selector": {"matchLabels": {"pool": "a"}}}, id="labels of nodes"),
        pytest.param({"podSelector": {"matchLabels": {"app": "web"}}}, id="podSelector"),
        pytest.param({"sandboxConfig": {"labels": {"a": "b"}}}, id="sandboxConfig"),
        pytest.param({"pullSecrets": ["s"]}, id="pullSecrets"),
        pytest.param({"parallelism": 2}, id="parallelism"),
        pytest.param({"pullPolicy": {"timeoutSeconds": 5}}, id="timeout"),
        pytest.param({"pullPolicy": {"backoffLimit": 1}}, id="retries"),
        pytest.param({"completionPolicy": {"type": "Never"}}, id="completionPolicy"),
        pytest.param({"imagePullPolicy": "Always"}, id="imagePullPolicy"),
    ],
)
def test_another_template(spec: Json):
    assert digits(**spec) != digits()
    assert template_of(list_job("a", **spec).spec) != template_of(list_job("a").spec)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"selector": {}}, {}, id="a selector that says nothing"),
        pytest.param(
            {"selector": {"matchLabels": {"a": "1", "b": "2"}}},
            {"selector": {"matchLabels": {"b": "2", "a": "1"}}},
            id="in another order",
        ),
        pytest.param({"pullPolicy": {"timeoutSeconds": 600}}, {"pullPolicy": {"backoffLimit": 3}}, id="defaults"),
    ],
)
def test_the_same_template(one: Json, other: Json):
    assert digits(**one) == digits(**other)


@pytest.mark.parametrize("images", [("a",), ("a", "b")])
def test_an_unlabelled_job_of_another_template_goes(images: tuple[str, ...]):
    old, new = list_job(*images), list_job(*images, selector=NAMED)
    children = [child(image, old, label="f00") for image in images]
    deleted = [action.name for action in passed(new, children).actions if action.name in {f"L-{one}" for one in images}]
    assert deleted == [f"L-{image}" for image in images]


def test_the_label_of_the_template_is_enough():
    """The child was changed by hand, or by an admission that fills in more."""
    parent = list_job("a")
    changed = child("a", list_job("a", imagePullPolicy="Always"), label=template_hash(parent.spec))
    assert passed(parent, [changed]).actions == []


def test_names_that_are_taken_again_and_again_are_avoided():
    taken: set[str] = set()
    for _ in range(4):
        (create,) = passed(list_job("a"), taken=frozenset(taken)).actions
        assert create.name not in taken
        taken.add(create.name)


def test_failed_images_are_told_in_order_of_their_names():
    parent = list_job("b", "a", "c", status={"startTime": "2026-03-01T11:00:00Z"})
    failed = {"desired": 1, "failed": 1}
    result = passed(parent, [child("c", parent, **failed), child("b", parent, **failed), child("a", parent, **failed)])
    assert result.status is not None
    assert [one["name"] for one in result.status.body["status"]["failedImageStatuses"]] == ["a", "b", "c"]


def test_a_list_that_is_as_it_was_is_not_written():
    parent = list_job("a")
    told = status_of(passed(parent, [child("a", parent)]))
    assert passed(list_job("a", status=told), [child("a", parent)]).status is None


def test_reasons_name_five_and_no_more():
    images = [f"i{number}" for number in range(7)]
    parent = list_job(*images, status={"startTime": "2026-03-01T11:00:00Z"})
    for status in ({"desired": 1, "active": 1}, {"desired": 1, "failed": 1}):
        reasons = passed(parent, [child(image, parent, **status) for image in images]).reasons
        assert {len(reason.objects) for reason in reasons if reason.objects} == {5}
