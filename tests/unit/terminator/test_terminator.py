"""Termination of the sidecars of a finished pod: the examples of container-extras.md §A7, and reasons."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.containerrecreaterequest.admission import pod_problem
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Create, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_common.settings import load
from flotilla_sidecar.app import PARTS
from flotilla_sidecar.terminator.containers import Ending
from flotilla_sidecar.terminator.controller import CONTROLLER, NODES, PODS, REQUESTS, Gatherer
from flotilla_sidecar.terminator.plan import EndingSnapshot, plan, request_name
from tests.support.controller_context import FakeContext
from tests.testkit import pods as pods_of
from tests.testkit.documents import decoded, owner
from tests.testkit.pods import container
from tests.unit.control.fakes import START

TERMINATE, IMAGE = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
IGNORE = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
SIDE = {TERMINATE: "true"}
IGNORED = SIDE | {IGNORE: "True"}
RUNNING = "running"
KEY = ("shop", "job-1")
CONDITION = "SidecarTerminated"


def pod(
    policy: str,
    states: dict[str, int | str | None],
    envs: dict[str, dict[str, str]] | None = None,
    phase: str = "Running",
    **metadata: Any,
) -> Pod:
    """Return a pod whose containers have exited with a code, are running, or have no status (None).

    `envs` of containers, by default those of a sidecar `s`.
    """
    envs = {"s": SIDE} if envs is None else envs
    containers = [
        container(name, f"{name}:1", env=[{"name": key, "value": value} for key, value in envs.get(name, {}).items()])
        for name in states
    ]
    statuses = [
        {"name": name, "state": {"running": {}} if code == RUNNING else {"terminated": {"exitCode": code}}}
        for name, code in states.items()
        if code is not None
    ]
    known = {"uid": "u1", "version": 1} | metadata
    spec = {"restartPolicy": policy}
    document = pods_of.pod(
        "job-1", "shop", **known, node="n1", containers=containers, spec=spec, phase=phase, statuses=statuses
    )
    return decoded(document, Pod)


REAL = msgspec.convert({"metadata": {"name": "n1"}}, Node)
VIRTUAL = msgspec.convert({"metadata": {"name": "n1", "labels": {"type": "virtual-kubelet"}}}, Node)


def request(phase: str = "") -> ContainerRecreateRequest:
    return msgspec.convert({"metadata": {"name": "r"}, "status": {"phase": phase}}, ContainerRecreateRequest)


def decided(one: Pod, node: Node | None = REAL, made: ContainerRecreateRequest | None = None) -> Plan:
    return plan(EndingSnapshot(ending=Ending(pod=one), node=node, request=made), START)


def writes(made: Plan) -> list[str]:
    """Return the writes of a plan in a few words."""
    return [said(action) for action in made.actions]


def said(action: Any) -> str:
    if isinstance(action, Create):
        return f"end {' '.join(one['name'] for one in action.body['spec']['containers'])}"
    assert isinstance(action, Patch)
    if action.subresource == "status":
        (condition,) = action.body["status"]["conditions"]
        return f"{action.body['status']['phase']} {condition['type']}"
    return " ".join(f"{one['name']}={one['image']}" for one in action.body["spec"]["containers"])


TWO = {"n": SIDE, "i": IGNORED}


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod("Never", {"m": RUNNING, "s": RUNNING}), [], id="1"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}), ["end s"], id="2"),
        pytest.param(pod("Never", {"m": 1, "s": RUNNING}), ["end s"], id="3"),
        pytest.param(pod("OnFailure", {"m": 1, "s": RUNNING}), [], id="4"),
        pytest.param(pod("OnFailure", {"m": 0, "s": RUNNING}), ["end s"], id="5"),
        pytest.param(pod("Always", {"m": 0, "s": RUNNING}), [], id="6"),
        pytest.param(pod("Never", {"m": 0, "s": 0}), [], id="7"),
        pytest.param(pod("Never", {"m": 0, "s": 0, "t": RUNNING}, {"s": SIDE, "t": SIDE}), ["end t"], id="8"),
        pytest.param(pod("OnFailure", {"m": 0, "n": RUNNING, "s": RUNNING}), [], id="9"),
        pytest.param(
            pod("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED}), [f"Succeeded {CONDITION}", "end s"], id="11"
        ),
        pytest.param(pod("Never", {"m": 1, "s": RUNNING}, {"s": IGNORED}), [f"Failed {CONDITION}", "end s"], id="12"),
        pytest.param(pod("Never", {"m": 0, "n": RUNNING, "i": RUNNING}, TWO), ["end n"], id="13: the one that counts"),
        pytest.param(
            pod("Never", {"m": 0, "n": 137, "i": RUNNING}, TWO),
            ["Succeeded SidecarTerminated", "end i"],
            id="13: then the other, had there been no request",
        ),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": {TERMINATE: "True"}}), ["end s"], id="14: True"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": {TERMINATE: "1"}}), [], id="14: 1"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": {IMAGE: "e"}}), [], id="17"),
        pytest.param(pod("Never", {"m": 0, "s": None}), [], id="18"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, deletionTimestamp="2026-01-01T00:00:00Z"), [], id="20"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, phase="Pending"), [], id="not started yet"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, phase="Succeeded"), ["end s"], id="over, and a sidecar runs"),
        pytest.param(
            pod("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED}, phase="Succeeded"), ["end s"], id="the phase is kept"
        ),
        pytest.param(pod("Never", {"s": RUNNING}), ["end s"], id="a pod with sidecars only"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": {IGNORE: "true"}}), [], id="the exit code alone"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING, "t": RUNNING}, {"s": SIDE, "t": SIDE}), ["end s t"], id="two"),
    ],
)
def test_examples(one: Pod, expected: list[str]) -> None:
    assert writes(decided(one)) == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}), [], id="10"),
        pytest.param(
            pod("Never", {"m": 0, "n": 0, "i": RUNNING}, TWO), ["Succeeded SidecarTerminated"], id="13: no second one"
        ),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED}, phase="Succeeded"), [], id="nothing is left"),
    ],
)
def test_a_pod_has_one_request(one: Pod, expected: list[str]) -> None:
    assert writes(decided(one, made=request())) == expected
    assert writes(decided(one, made=request("Completed"))) == expected


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": {IMAGE: "e"}}), ["s=e"], id="15"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": SIDE | {IMAGE: "e"}}), ["s=e"], id="both"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}), [], id="16"),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": {IMAGE: "s:1"}}), [], id="it has the image already"),
        pytest.param(
            pod("Never", {"m": 0, "s": 0, "t": RUNNING}, {"s": {IMAGE: "e"}, "t": {IMAGE: "f"}}),
            ["t=f"],
            id="one has ended",
        ),
        pytest.param(pod("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED}), [], id="exit codes are for real nodes"),
    ],
)
def test_virtual_nodes(one: Pod, expected: list[str]) -> None:
    assert writes(decided(one, VIRTUAL)) == expected


def test_19_a_node_that_is_missing_is_an_error() -> None:
    made = decided(pod("Never", {"m": 0, "s": RUNNING}), None)
    message = "node n1 does not exist, so it is unknown how to terminate sidecars"
    assert (made.stages, made.errors) == ((), (("terminate", message),))
    assert [(reason.code, reason.message) for reason in made.reasons] == [("NodeNotFound", message)]


def test_the_request() -> None:
    ((create,),) = decided(pod("Never", {"m": 0, "s": RUNNING})).stages[0].chains
    assert isinstance(create, Create)
    assert create.body == {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ContainerRecreateRequest",
        "metadata": {
            "name": "sidecar-termination-u1",
            "namespace": "shop",
            "ownerReferences": [owner("Pod", "job-1", "u1", "v1", blockOwnerDeletion=True)],
        },
        "spec": {
            "podName": "job-1",
            "containers": [{"name": "s"}],
            "strategy": {"forceRecreate": True, "failurePolicy": "Ignore"},
        },
    }
    assert create.on_success is not None
    told = (create.on_success.reason, create.on_success.warning, create.on_success.message)
    assert told == ("SidecarTerminator", False, "Try to terminate sidecar [s] using crr")


def test_the_final_phase_and_then_the_request() -> None:
    ((status, create),) = decided(pod("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED})).stages[0].chains
    assert isinstance(status, Patch)
    assert isinstance(create, Create)
    assert (status.uid, status.resource_version, status.patch_type.name) == ("u1", "", "STRATEGIC")
    assert status.body["status"]["conditions"] == [
        {
            "type": "SidecarTerminated",
            "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "message": "Terminated by Sidecar Terminator",
        }
    ]


def test_a_virtual_node_s_event_names_the_sidecars() -> None:
    ((patch,),) = decided(pod("Never", {"m": 0, "s": RUNNING}, {"s": {IMAGE: "e"}}), VIRTUAL).stages[0].chains
    assert patch.on_success is not None
    assert patch.on_success.message == "Try to terminate sidecar [s] using in-place update"


def test_a_request_for_a_pod_that_is_over_is_admitted() -> None:
    over = pod("Never", {"m": 0, "s": RUNNING}, {"s": IGNORED}, phase="Succeeded")
    assert pod_problem(over) == "not allowed to recreate containers in an inactive Pod"
    conditions = msgspec.json.decode(
        b'{"status":{"phase":"Succeeded","conditions":[{"type":"SidecarTerminated"}]}}', type=Pod
    )
    assert pod_problem(msgspec.structs.replace(over, status=conditions.status)) == ""


@pytest.mark.parametrize(
    ("made", "codes"),
    [
        pytest.param(None, [], id="about to be ended"),
        pytest.param(request("Recreating"), [], id="being ended"),
        pytest.param(request("Completed"), ["SidecarsStillRunning"], id="not ended"),
    ],
)
def test_a_sidecar_that_does_not_end_is_said(made: ContainerRecreateRequest | None, codes: list[str]) -> None:
    reasons = decided(pod("OnFailure", {"m": 0, "s": RUNNING}), made=made).reasons
    assert [reason.code for reason in reasons] == codes
    if codes:
        assert reasons[0].message == (
            "sidecar s still runs after ContainerRecreateRequest r: check why the request did not end it, or set "
            "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
        )


def ended_once(restarts: int, phase: str = "Running") -> Plan:
    """Plan for a sidecar that was terminated after one restart, and has now restarted this many times."""
    document = {
        "metadata": {"name": "r"},
        "spec": {"containers": [{"name": "s", "statusContext": {"containerID": "c://1", "restartCount": 1}}]},
        "status": {"phase": "Completed"},
    }
    one = pod("OnFailure", {"m": 0, "s": RUNNING}, phase=phase)
    one.status.container_statuses[1] = msgspec.structs.replace(one.status.container_statuses[1], restart_count=restarts)
    return decided(one, made=msgspec.convert(document, ContainerRecreateRequest))


def test_a_sidecar_that_is_started_again_does_not_keep_the_pod_from_its_end() -> None:
    """It was killed, or exited with a code other than 0, and the restart policy is OnFailure."""
    assert writes(ended_once(restarts=2)) == [f"Succeeded {CONDITION}"]
    assert writes(ended_once(restarts=2, phase="Succeeded")) == []
    assert writes(ended_once(restarts=1)) == []


def gatherer_over(context: FakeContext) -> Gatherer:
    gatherer = context.build(CONTROLLER)
    assert isinstance(gatherer, Gatherer)
    return gatherer


def test_only_pods_that_must_end_are_looked_at() -> None:
    context = FakeContext()
    gatherer = gatherer_over(context)
    busy = pod("Never", {"m": RUNNING, "s": RUNNING}, name="busy", uid="u2")
    context.put(PODS, busy, pod("Never", {"m": 0, "s": RUNNING}))
    context.put(NODES, REAL)
    assert gatherer.keys() == [KEY]
    assert context.woken == [KEY, KEY], "by itself, and by the node that came late"
    snapshot = gatherer.gather(KEY, Memory())
    assert snapshot is not None
    assert (snapshot.node, snapshot.request) == (REAL, None)
    assert gatherer.gather(("shop", "busy"), Memory()) is None
    assert gatherer.gather(("shop", "gone"), Memory()) is None


def test_the_request_is_found_by_the_pod_s_uid() -> None:
    context = FakeContext()
    gatherer = gatherer_over(context)
    metadata = {"name": request_name("u1"), "namespace": "shop", "uid": "r1", "resourceVersion": "1"}
    context.put(PODS, pod("Never", {"m": 0, "s": RUNNING}))
    context.put(REQUESTS, msgspec.convert({"metadata": metadata}, ContainerRecreateRequest))
    found = gatherer.gather(KEY, Memory())
    assert found is not None
    assert found.request is not None


@pytest.mark.parametrize(
    ("gates", "runs"),
    [
        pytest.param("", False, id="by default"),
        pytest.param("SidecarTerminator=true", True, id="on"),
        pytest.param("SidecarTerminator=true,KruiseDaemon=false", False, id="without agents"),
    ],
)
def test_the_gate(gates: str, runs: bool) -> None:
    assert CONTROLLER in PARTS
    assert (CONTROLLER.why_off(load({}, {}), Gates.parse(gates)) == "") == runs


def test_the_flag_for_workers() -> None:
    assert CONTROLLER.workers_of(load({}, {})) == 3
    assert CONTROLLER.workers_of(load({"sidecarterminator-workers": "5"}, {})) == 5
