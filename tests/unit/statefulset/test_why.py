"""Reasons about pods that a plan waits for, in Kubernetes' own words."""

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Plan
from tests.testkit.documents import Json
from tests.testkit.tables import cases
from tests.unit.statefulset.build import planned, pods, sts


def told(result: Plan, code: str) -> str:
    return next(f"{reason.state}: {reason.message}" for reason in result.reasons if reason.code == code)


def with_status(pod: Pod, **status: object) -> Pod:
    document: Json = msgspec.to_builtins(pod)
    document["status"] |= status
    return msgspec.convert(document, Pod)


def on_a_node(pod: Pod) -> Pod:
    document: Json = msgspec.to_builtins(pod)
    document["spec"]["nodeName"] = "n1"
    return msgspec.convert(document, Pod)


def waiting(reason: str, message: str = "") -> list[Json]:
    state = {"waiting": {"reason": reason, "message": message}}
    return [{"name": "main", "state": state, "ready": False, "restartCount": 0}]


PULL = 'Back-off pulling image "shop:A": ErrImagePull: rpc error: code = NotFound desc = shop:A: not found'
NO_NODE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu."}
ROWS: list[tuple[str, Json, str]] = [
    (
        "image",
        {"containerStatuses": waiting("ImagePullBackOff", PULL)},
        "cannot be pulled (ErrImagePull): shop:A: not found",
    ),
    (
        "init",
        {"initContainerStatuses": waiting("RunContainerError", "exec: no")},
        "init container main cannot be started: exec: no",
    ),
    ("starting", {"containerStatuses": waiting("ContainerCreating")}, "container main is being created"),
]


@pytest.mark.parametrize(("status", "expected"), cases(ROWS))
def test_the_pod_that_is_waited_for(status: Json, expected: str) -> None:
    (pod,) = pods("0AP")
    result = planned(sts(2, "A").ordered(), [on_a_node(with_status(pod, **status))])
    text = told(result, "WaitingForPod")
    assert text.startswith("waiting: w-0: ")
    assert text.endswith(f"{expected}; podManagementPolicy OrderedReady continues when it is available")


def test_a_pod_without_a_node() -> None:
    (pod,) = pods("0AP")
    result = planned(sts(2, "A").ordered(), [with_status(pod, containerStatuses=[], conditions=[NO_NODE])])
    assert told(result, "Unschedulable") == (
        "stuck: w-0: no node takes it: 0/3 nodes are available: 3 Insufficient cpu"
    )


@pytest.mark.parametrize(
    ("there", "code", "text"),
    [
        ("0A 1AT", "WaitingForPod", "w-1: terminating"),
        ("0A:PreparingNormal", "WaitingForPod", "w-0: about to become available"),
        ("0A@4 1A", "WaitingForPod", "w-0: ready, and available after minReadySeconds 10 (at 2026-03-01T12:00:06Z)"),
    ],
)
def test_other_things_that_are_waited_for(there: str, code: str, text: str) -> None:
    result = planned(sts(2, "A").ordered().rolling(minReadySeconds=10), there)
    assert told(result, code).startswith(f"waiting: {text}")


def test_who_uses_the_budget_up() -> None:
    result = planned(sts(6).m(2), "0A 1A! 2A 3A 4A 5A")
    text = "waiting: w-4, w-3, w-2, w-0; maxUnavailable 2 is used: w-1: it is not Ready; 1 pod of this pass"
    assert told(result, "WaitingForMaxUnavailable") == text
    assert told(result, "NotReady") == "waiting: w-1: it is not Ready"
