"""What is said of pods that are waited for: Kubernetes' own words."""

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Plan
from tests.unit.statefulset.build import Doc, planned, pods, sts


def told(result: Plan, code: str) -> str:
    return next(reason.message for reason in result.reasons if reason.code == code)


def with_status(pod: Pod, **status: object) -> Pod:
    document: Doc = msgspec.to_builtins(pod)
    document["status"] |= status
    return msgspec.convert(document, Pod)


def condition(kind: str, message: str) -> Doc:
    return {"type": kind, "status": "False", "message": message}


def waiting(reason: str, message: str = "") -> list[Doc]:
    state = {"waiting": {"reason": reason, "message": message}}
    return [{"name": "main", "state": state, "ready": False, "restartCount": 0}]


NO_NODE = "0/3 nodes are available: 3 Insufficient cpu."
PULL = 'Back-off pulling image "shop:A"'
ROWS: list[tuple[str, Doc, str]] = [
    ("image", {"containerStatuses": waiting("ImagePullBackOff", PULL)}, f"main: ImagePullBackOff: {PULL}"),
    ("init", {"initContainerStatuses": waiting("CrashLoopBackOff")}, "main: CrashLoopBackOff"),
    (
        "unscheduled",
        {
            "containerStatuses": [],
            "conditions": [condition("PodScheduled", "0/3 nodes are available: 3 Insufficient cpu.")],
        },
        "PodScheduled: 0/3 nodes are available: 3 Insufficient cpu.",
    ),
    (
        "probe",
        {"conditions": [condition("ContainersReady", "containers with unready status: [main]")]},
        "ContainersReady: containers with unready status: [main]",
    ),
    (
        "starting",
        {
            "containerStatuses": waiting("ContainerCreating"),
            "conditions": [condition("ContainersReady", "containers with unready status: [main]")],
        },
        "ContainersReady: containers with unready status: [main]",
    ),
]


@pytest.mark.parametrize(("status", "expected"), [pytest.param(*row[1:], id=row[0]) for row in ROWS])
def test_the_pod_that_is_waited_for(status: Doc, expected: str) -> None:
    (pod,) = pods("0AP")
    result = planned(sts(2, "A").ordered(), [with_status(pod, **status)])
    text = f"waiting: w-0 is Pending ({expected}); podManagementPolicy OrderedReady goes on when it is available"
    assert told(result, "WaitingForPod") == text


@pytest.mark.parametrize(
    ("there", "code", "text"),
    [
        ("0A 1AT", "WaitingForPod", "w-1 is terminating"),
        ("0A:PreparingNormal", "WaitingForPod", "w-0 is in lifecycle state PreparingNormal"),
        ("0A@4 1A", "WaitingForPod", "w-0 is ready, and available at 12:00:06 (minReadySeconds 10)"),
    ],
)
def test_other_things_that_are_waited_for(there: str, code: str, text: str) -> None:
    result = planned(sts(2, "A").ordered().rolling(minReadySeconds=10), there)
    assert told(result, code).startswith(f"waiting: {text}; ")


def test_who_uses_the_budget_up() -> None:
    result = planned(sts(6).m(2), "0A 1A! 2A 3A 4A 5A")
    used = "w-1 is not ready (ContainersReady: False); 1 pod of this pass"
    text = f"waiting: w-4, w-3, w-2, w-1, w-0; maxUnavailable 2 is used: {used}"
    assert told(result, "WaitingForMaxUnavailable") == text
