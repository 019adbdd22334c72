"""Admission of ContainerRecreateRequests: refusals with their texts, and defaults.

See containerrecreaterequest.md §4.
"""

import copy
from typing import Any

import pytest

from flotilla_common.api.admission.review import Answer
from flotilla_common.api.resources import NODE, POD
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.testkit.admission import KindAdmission, applied, create, update
from tests.testkit.documents import Json

UNREADY = "crr.apps.kruise.io/unready-acquired"
PORTS = [{"name": "http", "containerPort": 80, "protocol": "TCP"}]
POD_DOCUMENT: Json = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "p1"},
    "spec": {
        "nodeName": "n",
        "terminationGracePeriodSeconds": 30,
        "containers": [
            {"name": "app", "image": "a", "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "x"]}}}},
            {
                "name": "web",
                "image": "w",
                "ports": PORTS,
                "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": "http"}}},
            },
            {"name": "nap", "image": "n", "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}},
            {"name": "odd", "image": "n", "lifecycle": {"preStop": {"carrierPigeon": {}}}},
            {"name": "plain", "image": "s", "ports": PORTS},
            {"name": "new", "image": "s"},
            {"name": "unseen", "image": "s"},
        ],
        "initContainers": [{"name": "init", "image": "i"}],
    },
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {"name": name, "containerID": f"containerd://{name}", "restartCount": 2}
            for name in ("app", "web", "nap", "odd", "plain")
        ]
        + [{"name": "new", "restartCount": 0}],
        "initContainerStatuses": [{"name": "init", "containerID": "containerd://i", "restartCount": 0}],
    },
}


def request(*containers: str, version: str = "v1beta1", metadata: Json | None = None, **spec: Any) -> Json:
    given = {"podName": "p", "containers": [{"name": name} for name in containers]} | spec
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "ContainerRecreateRequest",
        "metadata": {"name": "r", "namespace": "ns"} | (metadata or {}),
        "spec": given,
    }


class Case(KindAdmission):
    """Admission over a fake cluster with one node and one pod."""

    def __init__(self, pod: Json | None = None, gates: str = "", node: Json | None = None) -> None:
        super().__init__("containerrecreaterequest", gates=gates)
        self.cluster.put(NODE, {"metadata": {"name": "n"} | (node or {})})
        self.cluster.put(POD, copy.deepcopy(pod or POD_DOCUMENT))

    async def create(self, document: Json) -> Answer:
        return await self.mutate(create(document, "ns"))

    async def created(self, document: Json) -> Json:
        """Return the object as the create call returns it."""
        answer = await self.create(document)
        assert answer.allowed, answer.message
        return applied(document, answer)

    async def update(self, document: Json, old: Json, sub_resource: str = "") -> Answer:
        return await self.mutate(update(document, old, "ns", sub_resource=sub_resource))


def pod(metadata: Json | None = None, spec: Json | None = None, status: Json | None = None) -> Json:
    document = copy.deepcopy(POD_DOCUMENT)
    for member, change in (("metadata", metadata), ("spec", spec), ("status", status)):
        document[member] |= change or {}
    return document


DELETED = {"deletionTimestamp": "2026-03-01T08:00:00Z"}
TERMINATED = {"conditions": [{"type": "SidecarTerminated", "status": "True"}]}


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_everything_is_in_what_create_returns(version: str):
    document = await Case().created(request("app", "plain", version=version, metadata={"labels": {"mine": "x"}}))
    assert document["metadata"]["labels"] == {
        "mine": "x",
        "crr.apps.kruise.io/active": "true",
        "crr.apps.kruise.io/pod-uid": "p1",
        "crr.apps.kruise.io/node-name": "n",
    }
    assert document["spec"] == {
        "podName": "p",
        "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 30},
        "containers": [
            {
                "name": "app",
                "preStop": {"exec": {"command": ["sh", "-c", "x"]}},
                "statusContext": {"containerID": "containerd://app", "restartCount": 2},
            },
            {"name": "plain", "statusContext": {"containerID": "containerd://plain", "restartCount": 2}},
        ],
    }


@pytest.mark.parametrize(
    ("container", "hook", "ports"),
    [
        pytest.param("web", {"httpGet": {"path": "/", "port": "http"}}, PORTS, id="httpGet comes with ports"),
        pytest.param("nap", {"sleep": {"seconds": 3}}, None, id="sleep"),
        pytest.param("odd", {}, None, id="a kind that nobody knows"),
        pytest.param("plain", None, None, id="no hook, no ports"),
    ],
)
async def test_hooks(container: str, hook: Json | None, ports: list[Json] | None):
    (found,) = (await Case().created(request(container)))["spec"]["containers"]
    assert (found.get("preStop"), found.get("ports")) == (hook, ports)


async def test_what_the_user_says_stays():
    strategy = {"failurePolicy": "Ignore", "terminationGracePeriodSeconds": 0, "unreadyGracePeriodSeconds": 0}
    document = await Case().created(request("app", strategy=strategy, activeDeadlineSeconds=3))
    assert document["spec"]["strategy"] == strategy


async def test_a_virtual_node_is_told():
    case = Case(node={"labels": {"type": "virtual-kubelet"}})
    assert (await case.created(request("app")))["metadata"]["labels"]["type"] == "virtual-kubelet"


@pytest.mark.parametrize(
    ("document", "of", "message"),
    [
        pytest.param(request("app", podName=""), None, "podName can not be empty", id="no pod name"),
        pytest.param(request(), None, "containers list can not be null", id="no containers"),
        pytest.param(
            request("app", activeDeadlineSeconds=2),
            None,
            "activeDeadlineSeconds can not be less than 3s",
            id="deadline",
        ),
        pytest.param(
            request("app", strategy={"terminationGracePeriodSeconds": -1}),
            None,
            "terminationGracePeriodSeconds must be non-negative integer",
            id="negative grace",
        ),
        pytest.param(
            request("app", strategy={"unreadyGracePeriodSeconds": -1}),
            None,
            "unreadyGracePeriodSeconds must be non-negative integer",
            id="negative unready grace",
        ),
        pytest.param(
            request("app", strategy={"failurePolicy": "Retry"}), None, "unknown failurePolicy Retry", id="policy"
        ),
        pytest.param(request("app", podName="q"), None, "no found Pod named q", id="no pod"),
        pytest.param(
            request("app"),
            pod(status={"phase": "Succeeded"}),
            "not allowed to recreate containers in an inactive Pod",
            id="26 finished pod",
        ),
        pytest.param(
            request("app"), pod(DELETED), "not allowed to recreate containers in an inactive Pod", id="deleted pod"
        ),
        pytest.param(
            request("app"),
            pod(spec={"nodeName": ""}),
            "not allowed to recreate containers in a pending Pod",
            id="26 pending pod",
        ),
        pytest.param(
            request("app"), pod(spec={"nodeName": "m"}), 'failed to get Node m: nodes "m" not found', id="no node"
        ),
        pytest.param(request("app", "app"), None, "can not recreate app multi times", id="26 twice"),
        pytest.param(request("db"), None, "container db not found in Pod", id="26 unknown container"),
        pytest.param(request("init"), None, "container init not found in Pod", id="init container"),
        pytest.param(request("unseen"), None, "not found unseen containerStatus in Pod Status", id="no status"),
        pytest.param(
            request("new"),
            None,
            "no containerID in new containerStatus, maybe the container has not been initialized",
            id="no ID",
        ),
        pytest.param(
            request(containers=[{"name": "app", "statusContext": {"containerID": "x", "restartCount": 0}}]),
            None,
            "preStop, ports, statusContext in container app are read-only fields",
            id="set by the user",
        ),
        pytest.param(
            request("app", minStartedSeconds="x", strategy={"minStartedSeconds": "x"}),
            None,
            "Expected `int`, got `str` - at `$.spec.strategy.minStartedSeconds`",
            id="wrong type",
        ),
        pytest.param(
            {"apiVersion": "apps.kruise.io/v2"}, None, "unsupported version apps.kruise.io/v2", id="unknown version"
        ),
    ],
)
async def test_refused_creations(document: Json, of: Json | None, message: str):
    answer = await Case(of).create(document)
    assert (answer.allowed, answer.code, answer.message) == (False, 400, message)


async def test_the_sidecars_of_a_finished_job_pod_may_be_stopped():
    assert (await Case(pod(status={"phase": "Succeeded"} | TERMINATED)).create(request("app"))).allowed


@pytest.mark.parametrize("failure", [ApiError(503, "ServiceUnavailable", "no quorum"), Unreachable("no quorum")])
async def test_without_an_apiserver_nothing_is_admitted(failure: Exception):
    case = Case()
    case.cluster.fail_gets = failure
    answer = await case.create(request("app"))
    assert (answer.code, answer.message) == (500, "failed to get Pod p: no quorum")


async def test_every_request_is_refused_without_the_gate():
    case = Case(gates="KruiseDaemon=false")
    for answer in (await case.create(request("app")), await case.update(request("app"), request("app"))):
        assert (answer.code, answer.message) == (403, "feature-gate KruiseDaemon is not enabled")


def changed(document: Json, **metadata: Any) -> Json:
    return document | {"metadata": document["metadata"] | metadata}


OLD = request("app", metadata={"labels": {"crr.apps.kruise.io/pod-uid": "p1", "crr.apps.kruise.io/node-name": "n"}})
LABELS = OLD["metadata"]["labels"]
NOTED = changed(OLD, annotations={UNREADY: "2026-03-01T08:00:00Z"}) | {"apiVersion": "apps.kruise.io/v1alpha1"}


@pytest.mark.parametrize(
    ("document", "old", "message"),
    [
        pytest.param(OLD, OLD, "", id="nothing"),
        pytest.param(changed(OLD, finalizers=["a/b"], labels=LABELS | {"x": "y"}), OLD, "", id="labels and finalizers"),
        pytest.param(
            OLD | {"spec": OLD["spec"] | {"strategy": {"minStartedSeconds": 0}}}, OLD, "", id="the same in other words"
        ),
        pytest.param(
            OLD | {"spec": OLD["spec"] | {"podName": "q"}},
            OLD,
            "spec of ContainerRecreateRequest is immutable",
            id="another spec",
        ),
        pytest.param(
            changed(OLD, labels=LABELS | {"crr.apps.kruise.io/pod-uid": "p2"}),
            OLD,
            "not allowed to update immutable label crr.apps.kruise.io/pod-uid",
            id="another pod",
        ),
        pytest.param(
            changed(OLD, labels={"crr.apps.kruise.io/pod-uid": "p1"}),
            OLD,
            "not allowed to update immutable label crr.apps.kruise.io/node-name",
            id="node taken away",
        ),
        pytest.param(
            changed(NOTED, annotations={UNREADY: "2026-03-01T09:00:00Z"}),
            NOTED,
            f"not allowed to update immutable annotation {UNREADY}",
            id="another grace in v1alpha1",
        ),
        pytest.param(NOTED, changed(NOTED, annotations={}), "", id="a first grace in v1alpha1"),
    ],
)
async def test_updates(document: Json, old: Json, message: str):
    answer = await Case().update(document, old)
    assert (answer.allowed, answer.code, answer.message) == ((False, 403, message) if message else (True, 200, ""))


async def test_status_updates_pass():
    assert (await Case().update(OLD | {"spec": {}}, OLD, "status")).allowed


async def test_annotations_of_v1alpha1_are_not_stored_in_v1beta1():
    noted = changed(OLD, annotations={UNREADY: "x", "own": "y"})
    answer = await Case().update(noted, OLD)
    assert [operation.document() for operation in answer.patch] == [
        {"op": "remove", "path": "/metadata/annotations/crr.apps.kruise.io~1unready-acquired"}
    ]
