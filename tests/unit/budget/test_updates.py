"""The effect of a pod's update on its budget (podunavailablebudget.md §8.3; worked examples 30 to 35, 43 to 47)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.workload.budget import operation_of_update
from tests.testkit.documents import Json
from tests.unit.budget.build import pod_document

UNAVAILABLE = "unavailable-pod.kruise.io/"


def changed(**members: Any) -> Json:
    return pod_document(**members)


def sized(resources: Json, **container: Any) -> Json:
    return pod_document(
        spec={"containers": [{"name": "main", "image": "nginx:1.29", "resources": resources, **container}]}
    )


ONE = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
BURSTABLE = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}}


def burstable(side: str, name: str, value: str | None) -> Json:
    resources = msgspec.json.decode(msgspec.json.encode(BURSTABLE))
    resources[side][name] = value
    if value is None:
        del resources[side][name]
    return resources


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (changed(), changed(), ""),
        (changed(), changed(spec={"containers": [{"name": "main", "image": "nginx:1.30"}]}), "UPDATE"),
        (changed(), changed(spec={"activeDeadlineSeconds": 9}), "UPDATE"),
        (changed(), changed(metadata={"labels": {UNAVAILABLE + "x": ""}}), "UPDATE"),
        (
            changed(metadata={"labels": {UNAVAILABLE + "x": ""}}),
            changed(metadata={"labels": {UNAVAILABLE + "x": "", UNAVAILABLE + "y": ""}}),
            "",
        ),
        (changed(metadata={"labels": {UNAVAILABLE + "x": ""}}), changed(), ""),
        (changed(), changed(metadata={"annotations": {"a": "b"}, "finalizers": ["f/g"], "labels": {"app": "b"}}), ""),
        (changed(), changed(status={"phase": "Pending"}), ""),
    ],
    ids=["nothing", "30 image", "any member", "33 label", "34 second label", "label gone", "35 metadata", "status"],
)
def test_disruptive(before: Json, after: Json, expected: str) -> None:
    assert operation_of_update(before, after) == expected


NO_RESTART = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
RESTART = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
STATIC = {"annotations": {"kubernetes.io/config.source": "file"}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (sized(BURSTABLE), sized(burstable("requests", "cpu", "2")), "RESIZE"),
        (
            sized(BURSTABLE, resizePolicy=NO_RESTART),
            sized(burstable("requests", "cpu", "2"), resizePolicy=NO_RESTART),
            "RESIZE",
        ),
        (sized(BURSTABLE), sized(burstable("requests", "cpu", None)), "RESIZE"),
        (
            sized(BURSTABLE, resizePolicy=RESTART),
            sized(burstable("limits", "memory", "5Gi"), resizePolicy=RESTART),
            "UPDATE",
        ),
        (
            sized(BURSTABLE, resizePolicy=RESTART),
            sized(burstable("limits", "cpu", "5"), resizePolicy=RESTART),
            "RESIZE",
        ),
        (sized(ONE), sized({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}), "UPDATE"),
        (sized(BURSTABLE), sized(burstable("requests", "ephemeral-storage", "1Gi")), "UPDATE"),
        (sized(BURSTABLE), sized(BURSTABLE | {"claims": [{"name": "gpu"}]}), "UPDATE"),
        (sized(BURSTABLE), sized(burstable("requests", "cpu", "many")), "UPDATE"),
        (sized(BURSTABLE), sized(burstable("requests", "cpu", "2"), image="nginx:1.30"), "UPDATE"),
        (sized(BURSTABLE), sized(burstable("requests", "cpu", "2"), name="other"), "UPDATE"),
        (
            sized(BURSTABLE) | {"metadata": STATIC},
            sized(burstable("requests", "cpu", "2")) | {"metadata": STATIC},
            "UPDATE",
        ),
        (
            sized(BURSTABLE),
            sized(burstable("requests", "cpu", "2")) | {"metadata": {"labels": {UNAVAILABLE + "x": ""}}},
            "UPDATE",
        ),
    ],
    ids=[
        "43 cpu",
        "43 by policy",
        "an absent request",
        "45 restarts for memory",
        "45 restarts for memory, cpu changes",
        "46 another QoS class",
        "47 another resource",
        "claims",
        "no quantity",
        "image, too",
        "another name",
        "static",
        "label, too",
    ],
)
def test_resize(before: Json, after: Json, expected: str) -> None:
    assert operation_of_update(before, after) == expected


def test_a_container_more_is_an_update() -> None:
    one = sized(BURSTABLE)
    two = pod_document(spec={"containers": one["spec"]["containers"] * 2})
    assert operation_of_update(one, two) == "UPDATE"
