"""The conditions under which pods count as available (podunavailablebudget.md §6)."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import BudgetStatus
from flotilla_common.workload.budget import is_available, is_consistent, is_ready
from tests.unit.budget.build import GATES, IMAGE_ID, LONG_AGO, NOW, pod

DIGEST = "nginx@sha256:" + "a" * 64
OTHER = "nginx@sha256:" + "b" * 64
STATE = "apps.kruise.io/inplace-update-state"
SIDECARS = {"kruise.io/sidecarset-injected-list": "log"}
SIDECAR = {"name": "log", "image": "log:2", "env": [{"name": "IS_INJECTED", "value": "true"}]}


def not_ready(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": reason}]}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, True),
        ({"status": {"phase": "Pending"}}, False),
        ({"status": not_ready("False")}, False),
        ({"status": not_ready("Unknown")}, False),
        ({"status": {"conditions": []}}, False),
        ({"metadata": {"deletionTimestamp": NOW}}, False),
        ({"metadata": {"labels": {"unavailable-pod.kruise.io/drain": ""}}}, False),
        ({"metadata": {"labels": {"x.unavailable-pod.kruise.io/drain": ""}}}, True),
    ],
)
def test_ready(members: dict[str, Any], expected: bool) -> None:
    assert is_ready(pod(**members)) is expected


def running(image: str, image_id: str = IMAGE_ID, reported: str = "nginx:1.29") -> dict[str, Any]:
    return {
        "spec": {"containers": [{"name": "main", "image": image}]},
        "status": {"containerStatuses": [{"name": "main", "image": reported, "imageID": image_id}]},
    }


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (running(DIGEST, f"docker-pullable://docker.io/library/{DIGEST}"), True),
        (running(f"docker.io/library/{DIGEST}", DIGEST), True),
        (running(DIGEST, OTHER), False),
        (running(DIGEST, ""), False),
        (running(DIGEST) | {"status": {"containerStatuses": []}}, False),
        (running(f"registry.test/{DIGEST}", DIGEST), False),
        (running("nginx:1.30"), True),
    ],
    ids=["scheme", "normalised", "another digest", "no id yet", "no status", "another registry", "tag, never updated"],
)
def test_consistent_by_digest(members: dict[str, Any], expected: bool) -> None:
    assert is_consistent(pod(**members), GATES) is expected


def updated(members: dict[str, Any], last: str = IMAGE_ID, **state: Any) -> dict[str, Any]:
    text = msgspec.json.encode({"lastContainerStatuses": {"main": {"imageID": last}}, **state}).decode()
    return members | {"metadata": {"annotations": {STATE: text}}}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (updated(running("nginx:1.30")), False),
        (updated(running("nginx:1.30", OTHER, "nginx:1.30")), True),
        (updated(running("nginx:1.30", reported="nginx:1.30")), True),
        (updated(running("nginx", reported="nginx:latest")), True),
        (updated(running("nginx:1.30", OTHER, "nginx:1.30"), nextContainerImages={"log": "log:2"}), False),
        (running("nginx:1.30") | {"metadata": {"annotations": {STATE: "{"}}}, False),
        (running("nginx:1.30") | {"metadata": {"annotations": {"apps.kruise.io/inplace-update-grace": "{}"}}}, False),
        (running(DIGEST) | {"metadata": {"annotations": {STATE: "{"}}}, True),
    ],
    ids=[
        "not yet",
        "another image",
        "same content, new tag",
        "latest",
        "a later batch",
        "unreadable",
        "in grace",
        "digests alone say it",
    ],
)
def test_consistent_by_update_in_place(members: dict[str, Any], expected: bool) -> None:
    assert is_consistent(pod(**members), GATES) is expected


def with_sidecar(state: str, image_id: str, reported: str, **annotations: str) -> dict[str, Any]:
    held = {"kruise.io/sidecarset-inplace-update-state": state} if state else {}
    return {
        "metadata": {"annotations": SIDECARS | held | annotations},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.29"}, SIDECAR]},
        "status": {
            "containerStatuses": [
                {"name": "main", "image": "nginx:1.29", "imageID": IMAGE_ID},
                {"name": "log", "image": reported, "imageID": image_id},
            ]
        },
    }


CHANGED = '{"log": {"lastContainerStatuses": {"log": {"imageID": "one"}}}}'


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (with_sidecar("", "one", "log:1"), True),
        (with_sidecar("[", "one", "log:1"), False),
        (with_sidecar(CHANGED, "one", "log:1"), False),
        (with_sidecar(CHANGED, "one", "docker.io/library/log:2"), True),
        (with_sidecar(CHANGED, "two", "log:2"), True),
        (with_sidecar('{"other": {"lastContainerStatuses": {"log": {"imageID": "one"}}}}', "one", "log:1"), True),
        (with_sidecar("[", "one", "log:1", **{"kruise.io/sidecarset-injected-list": ""}), True),
    ],
    ids=["never updated", "unreadable", "not yet", "same content", "updated", "another SidecarSet", "none injected"],
)
def test_consistent_by_sidecars(members: dict[str, Any], expected: bool) -> None:
    assert is_consistent(pod(**members), GATES) is expected


@pytest.mark.parametrize(
    ("status", "members", "expected"),
    [
        (BudgetStatus(), {}, True),
        (BudgetStatus(), {"status": {"phase": "Failed"}}, False),
        (BudgetStatus(disrupted_pods={"a": NOW}), {}, False),
        (BudgetStatus(unavailable_pods={"a": NOW}), {}, False),
        (BudgetStatus(unavailable_pods={"b": NOW}), {}, True),
        (BudgetStatus(disrupted_pods={"a": LONG_AGO - timedelta(seconds=1)}), {}, True),
        (BudgetStatus(), updated(running("nginx:1.30")), False),
    ],
    ids=["ready", "failed", "to be deleted", "to be updated", "another pod", "an earlier pod's entry", "inconsistent"],
)
def test_available(status: BudgetStatus, members: dict[str, Any], expected: bool) -> None:
    assert is_available(pod(**members), status, GATES) is expected
