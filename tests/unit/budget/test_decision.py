"""The decision that a request needs budget (podunavailablebudget.md §8.4 and §8.5; worked examples 26 to 50)."""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import OPERATIONS
from flotilla_common.gates import Gates
from flotilla_common.workload.budget import Pass, protected_operations, protected_replicas, related_budget, why_free
from tests.unit.budget.build import GATES, LONG_AGO, NOW, RESIZE_GATES, budget, pod

BY_ANNOTATION = "kruise.io/pub-protect-operations"


@pytest.mark.parametrize(
    ("configured", "gates", "expected"),
    [
        ([], GATES, {"DELETE", "UPDATE", "EVICT", "RESIZE"}),
        ([], RESIZE_GATES, {"DELETE", "UPDATE", "EVICT"}),
        (["EVICT", "UPDATE"], GATES, {"EVICT", "UPDATE", "RESIZE"}),
        (["EVICT", "UPDATE"], RESIZE_GATES, {"EVICT", "UPDATE"}),
        (["RESIZE"], GATES, {"RESIZE"}),
        (["RESIZE"], RESIZE_GATES, {"RESIZE"}),
        (["RESIZE", "DELETE"], GATES, {"RESIZE", "DELETE"}),
        (["RESIZE", "DELETE"], RESIZE_GATES, {"RESIZE", "DELETE"}),
        (["EVICT"], GATES, {"EVICT"}),
        (["EVICT"], RESIZE_GATES, {"EVICT"}),
    ],
)
def test_operations(configured: list[str], gates: Gates, expected: set[str]) -> None:
    assert protected_operations(budget(spec={"protectOperations": configured}), gates) == expected
    written = {"annotations": {BY_ANNOTATION: " , ".join(configured)}}
    assert protected_operations(budget(metadata=written), gates) == expected


def test_the_field_outranks_the_annotation() -> None:
    both = budget(metadata={"annotations": {BY_ANNOTATION: "DELETE"}}, spec={"protectOperations": ["EVICT"]})
    assert protected_operations(both, RESIZE_GATES) == {"EVICT"}


@pytest.mark.parametrize(
    ("field", "annotation", "expected"),
    [
        (None, None, None),
        (14, None, 14),
        (14, "9", 14),
        (None, "9", 9),
        (None, "nine", None),
        (None, str(1 << 31), None),
    ],
)
def test_replicas(field: int | None, annotation: str | None, expected: int | None) -> None:
    written = {} if annotation is None else {"pub.kruise.io/protect-total-replicas": annotation}
    held = budget(metadata={"annotations": written}, spec={} if field is None else {"protectTotalReplicas": field})
    assert protected_replicas(held) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, ""),
        ({"pub.kruise.io/related-pub": "one", "kruise.io/related-pub": "two"}, "one"),
        ({"pub.kruise.io/related-pub": "", "kruise.io/related-pub": "two"}, "two"),
        ({"kruise.io/related-pub": "two"}, "two"),
    ],
)
def test_related_budget(annotations: dict[str, str], expected: str) -> None:
    assert related_budget(pod(metadata={"annotations": annotations}).metadata) == expected


EXHAUSTED = {"unavailableAllowed": 0}
UNREADY = {"conditions": [{"type": "Ready", "status": "False"}]}


def unprotected(value: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {"pub.kruise.io/no-protect": value}}}


def ignoring(*, key: str = "expendable") -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    return {"ignoredPodSelector": selector}


@pytest.mark.parametrize(
    ("operation", "members", "of_budget", "expected"),
    [
        ("DELETE", {}, {}, None),
        ("DELETE", {}, {"status": EXHAUSTED}, None),
        ("DELETE", {"status": UNREADY}, {"status": EXHAUSTED}, Pass.NOT_READY),
        ("UPDATE", {"status": UNREADY}, {"status": EXHAUSTED}, Pass.NOT_READY),
        ("EVICT", {"metadata": {"labels": {"unavailable-pod.kruise.io/x": ""}}}, {"status": EXHAUSTED}, Pass.NOT_READY),
        ("DELETE", {"metadata": {"deletionTimestamp": NOW}}, {"status": EXHAUSTED}, Pass.NOT_READY),
        (
            "DELETE",
            {"metadata": {"annotations": {"apps.kruise.io/inplace-update-state": "{"}}},
            {"status": EXHAUSTED},
            Pass.INCONSISTENT,
        ),
        ("DELETE", {}, {"status": EXHAUSTED, "spec": {"protectOperations": ["EVICT"]}}, Pass.NOT_PROTECTED),
        ("EVICT", {}, {"status": EXHAUSTED, "spec": {"protectOperations": ["EVICT"]}}, None),
        ("DELETE", {}, {"metadata": {"annotations": {BY_ANNOTATION: "UPDATE"}}}, Pass.NOT_PROTECTED),
        ("UPDATE", {}, {"metadata": {"annotations": {BY_ANNOTATION: "UPDATE"}}}, None),
        ("DELETE", unprotected("yes"), {}, None),
        ("DELETE", unprotected("T"), {}, Pass.EXEMPT),
        ("DELETE", unprotected("1"), {}, Pass.EXEMPT),
        ("DELETE", unprotected("false"), {}, None),
        ("EVICT", {"metadata": {"labels": {"expendable": ""}}}, {"spec": ignoring()}, Pass.IGNORED),
        ("EVICT", {}, {"spec": ignoring()}, None),
        ("EVICT", {}, {"spec": {"ignoredPodSelector": {}}}, None),
        ("DELETE", {}, {"status": {"desiredAvailable": 0}}, Pass.NOTHING_DESIRED),
        ("RESIZE", {}, {}, None),
        ("DELETE", {}, {"status": {"disruptedPods": {"a": NOW}}}, Pass.RECORDED),
        ("DELETE", {}, {"status": {"unavailablePods": {"a": NOW}}}, Pass.RECORDED),
        ("DELETE", {}, {"status": {"disruptedPods": {"a": LONG_AGO - timedelta(seconds=1)}}}, None),
    ],
    ids=[
        "26 delete",
        "27 exhausted: it is taken, or not, elsewhere",
        "29 unready",
        "31 unready update",
        "32 unavailable label",
        "terminating",
        "inconsistent",
        "36 delete",
        "36 evict",
        "37 delete",
        "37 image",
        "38 yes",
        "38 T",
        "38 1",
        "38 false",
        "39 ignored",
        "39 another",
        "an empty selector ignores nobody",
        "49 no pass yet",
        "44 resize",
        "28 recorded",
        "28 recorded as an update",
        "recorded for an earlier pod of that name",
    ],
)
def test_why_free(operation: str, members: dict[str, Any], of_budget: dict[str, Any], expected: Pass | None) -> None:
    assert why_free(pod(**members), budget(**of_budget), operation, GATES) is expected


def test_resize_is_free_where_it_is_told_from_updates() -> None:
    assert why_free(pod(), budget(), "RESIZE", RESIZE_GATES) is Pass.NOT_PROTECTED  # 43


@pytest.mark.parametrize("operation", OPERATIONS)
def test_without_a_budget_all_is_free(operation: str) -> None:
    assert why_free(pod(), None, operation, GATES) is Pass.NO_BUDGET  # 54


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="matchExpressions"):
        why_free(pod(), budget(spec=ignoring(key="not a key")), "DELETE", GATES)


def test_a_pod_that_is_not_ready_passes_whatever_is_wrong_with_the_budget() -> None:
    assert why_free(pod(status=UNREADY), budget(spec=ignoring(key="not a key")), "DELETE", GATES) is Pass.NOT_READY
