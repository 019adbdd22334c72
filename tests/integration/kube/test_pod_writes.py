"""The engine's patches on a real apiserver: the content of one write, and what makes it refused."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from flotilla_cloneset.cloneset.revisions import CODEC
from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain, Intent, Patch
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace import InPlaceContext, UpdateSpec, refresh, start
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.predicates import is_settled
from tests.support.cluster import Cluster, eventually
from tests.support.rest import STRATEGIC

CONTEXT = InPlaceContext(
    codec=CODEC,
    lifecycle=None,
    gates=Gates.parse("InPlaceWorkloadVerticalScaling=true"),
    server_version="v1.36.3",
    now=datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC),
)


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> str:
    """Create a node without a kubelet; a resize that it has no room for is refused."""
    room = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    cluster.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "nowhere"}, "status": {"allocatable": room}}
    )
    return "nowhere"


@pytest_asyncio.fixture(loop_scope="module")
async def pod(cluster: Cluster, node: str, request: pytest.FixtureRequest) -> Pod:
    """Create a pod of ours on a node without a kubelet."""
    await eventually(lambda: "default" in cluster.kubectl("get", "serviceaccount", "-o", "name", check=False))
    name = request.node.name.replace("_", "-")[:40].strip("-")
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"lifecycle.apps.kruise.io/state": "PreparingNormal", "controller-revision-hash": "sample-a"},
            "finalizers": ["x.io/keep", "x.io/drop"],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "nginx:1", "resources": resources}, {"name": "aux", "image": "b"}],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}],
        },
    }
    cluster.create(manifest)
    return read(cluster, name)


def read(cluster: Cluster, name: str) -> Pod:
    return msgspec.convert(cluster.read("pod", name), Pod)


def send(cluster: Cluster, chain: Chain) -> None:
    """Carry the chain out as the executor does; raises AssertionError for a refusal."""
    version = ""
    for action in chain:
        assert isinstance(action, Patch)
        wanted = version if action.after_previous else action.resource_version
        body: dict[str, Any] = json.loads(msgspec.json.encode(action.body))
        body.setdefault("metadata", {}).update({"uid": action.uid} | ({"resourceVersion": wanted} if wanted else {}))
        reply = cluster.send_patch("pod", action.name, body, kind=STRATEGIC, subresource=action.subresource)
        version = reply["metadata"]["resourceVersion"]


def begin(pod: Pod, spec: UpdateSpec) -> Chain:
    labels = {"controller-revision-hash": spec.revision}
    return start(pod, spec, CONTEXT, revision_labels=labels)


def settle(cluster: Cluster, pod: Pod) -> Pod:
    outcome = refresh(pod, CONTEXT, on_target=True, wanted=False)
    send(cluster, outcome.chain)
    assert len(outcome.chain) == 1
    return read(cluster, pod.metadata.name)


@pytest.mark.asyncio(loop_scope="module")
async def test_one_status_patch_settles_a_new_pod(cluster: Cluster, pod: Pod) -> None:
    settled = settle(cluster, pod)
    assert settled.state == "Normal"
    assert settled.metadata.annotations["lifecycle.apps.kruise.io/timestamp"] == "2026-03-01T12:00:00Z"
    assert {kind: settled.conditions[kind].status for kind in settled.gates} == dict.fromkeys(settled.gates, "True")
    assert is_settled(settled)


@pytest.mark.asyncio(loop_scope="module")
async def test_start_and_completion(cluster: Cluster, pod: Pod) -> None:
    spec = UpdateSpec(
        revision="sample-b",
        images={"main": "nginx:2"},
        resources={"main": {"requests": {"cpu": "1500m"}}},
        metadata_patch={"labels": {"v": "2"}, "$deleteFromPrimitiveList/finalizers": ["x.io/drop"]},
    )
    send(cluster, begin(settle(cluster, pod), spec))
    updated = read(cluster, pod.metadata.name)
    assert [container.image for container in updated.spec.containers] == ["nginx:2", "b"]
    assert updated.spec.containers[0].resources.requests == {"cpu": "1500m"}
    assert updated.spec.containers[0].resources.limits == {"cpu": "2"}
    assert (updated.revision, updated.state, updated.metadata.labels["v"]) == ("sample-b", "Updating", "2")
    assert updated.metadata.finalizers == ["x.io/keep"]
    assert updated.conditions["InPlaceUpdateReady"].reason == "StartInPlaceUpdate"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_reason_that_goes_is_gone(cluster: Cluster, pod: Pod) -> None:
    settled = settle(cluster, pod)
    send(cluster, begin(settled, UpdateSpec(revision="sample-b"))[:1])
    done = settle(cluster, read(cluster, pod.metadata.name))
    condition = done.conditions["InPlaceUpdateReady"]
    assert (condition.status, condition.reason, condition.message) == ("True", "", "")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_stale_view_is_refused(cluster: Cluster, pod: Pod) -> None:
    settled = settle(cluster, pod)
    cluster.kubectl("label", "pod", pod.metadata.name, "someone=else")
    with pytest.raises(AssertionError, match="the object has been modified"):
        send(cluster, begin(settled, UpdateSpec(revision="sample-b", images={"main": "nginx:2"})))


@pytest.mark.asyncio(loop_scope="module")
async def test_finalizers_are_appended(cluster: Cluster, pod: Pod) -> None:
    edit = PodEdit(pod, Intent.REFRESH, "test")
    edit.add_finalizers(["x.io/more"])
    edit.set_labels({"lifecycle.apps.kruise.io/state": None})
    send(cluster, edit.chain())
    found = read(cluster, pod.metadata.name)
    assert set(found.metadata.finalizers) == {"x.io/keep", "x.io/drop", "x.io/more"}
    assert found.state == ""
