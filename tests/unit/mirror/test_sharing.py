"""Equal parts of pods are in memory once, and sharing them changes nothing that a planner reads."""

import random
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Container, Pod, SchedulingGate
from flotilla_common.api.resources import POD
from flotilla_common.mirror import sharing
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import Table
from tests.support.random_pods import random_pod


def document(name: str, node: str = "node-1", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"u-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-28T11:52:01Z",
            "labels": {"app": "web", "controller-revision-hash": "web-7f6f9f9d"},
            "annotations": {"apps.kruise.io/runtime-containers-meta": name},
            "ownerReferences": [
                {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "uid": "c"}
            ],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "nginx:1", "env": [{"name": "A", "value": "b"}]}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
            "volumes": [
                {"name": f"kube-api-access-{name}"},
                {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-28T11:52:03Z"}],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "nginx:1",
                    "containerID": f"containerd://{name}",
                    "state": {"running": {"startedAt": "2026-11-28T11:52:03Z"}},
                }
            ],
        },
    } | more


def decoded(*documents: dict[str, Any]) -> list[Pod]:
    decoder = ObjectDecoder(POD, Pod, Table[Pod]())
    pods = [decoder.decode(msgspec.json.encode(one)) for one in documents]
    assert None not in pods
    return [pod for pod in pods if pod is not None]


def test_pods_of_a_workload_share_what_is_equal() -> None:
    a, b = decoded(document("a"), document("b"))
    for one, other in (
        (a.spec.containers, b.spec.containers),
        (a.spec.tolerations, b.spec.tolerations),
        (a.spec.readiness_gates, b.spec.readiness_gates),
        (a.spec.node_name, b.spec.node_name),
        (a.metadata.owner_references, b.metadata.owner_references),
        (a.metadata.creation_timestamp, b.metadata.creation_timestamp),
        (a.metadata.labels["controller-revision-hash"], b.metadata.labels["controller-revision-hash"]),
        (next(iter(a.metadata.annotations)), next(iter(b.metadata.annotations))),
        (a.status.conditions[0], b.status.conditions[0]),
        (a.status.container_statuses[0].state, b.status.container_statuses[0].state),
        (a.gates, b.gates),
    ):
        assert one is other


def test_what_differs_stays_with_its_pod() -> None:
    a, b = decoded(document("a"), document("b", node="node-2"))
    assert [pod.metadata.name for pod in (a, b)] == ["a", "b"]
    assert [pod.spec.node_name for pod in (a, b)] == ["node-1", "node-2"]
    assert [list(pod.metadata.annotations.values()) for pod in (a, b)] == [["a"], ["b"]]
    assert [pod.status.container_statuses[0].container_id for pod in (a, b)] == ["containerd://a", "containerd://b"]


def test_of_volumes_those_with_claims_are_kept() -> None:
    (pod,) = decoded(document("a"))
    assert [(volume.name, volume.persistent_volume_claim) for volume in pod.spec.volumes] == [
        ("data", pod.spec.volumes[0].persistent_volume_claim)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_else_changes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare many pods with their plain decoding, also when sharing starts over in between."""
    monkeypatch.setattr(sharing, "MOST_PARTS", 5)
    rng = random.Random(seed)
    raws = [msgspec.json.encode(random_pod(rng)) for _ in range(30)]
    decoder = ObjectDecoder(POD, Pod, Table[Pod]())
    for raw in raws:
        plain = msgspec.json.decode(raw, type=Pod)
        claims = [volume for volume in plain.spec.volumes if volume.persistent_volume_claim is not None]
        spec = msgspec.structs.replace(plain.spec, volumes=claims)
        assert decoder.decode(raw) == msgspec.structs.replace(plain, spec=spec)


def test_sharing_does_not_keep_the_parts_of_pods_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "MOST_PARTS", 10)
    parts = sharing.Parts()
    for number in range(100):
        pod = msgspec.json.decode(msgspec.json.encode(document(str(number), node=f"node-{number}")), type=Pod)
        parts.share(pod)
        assert len(parts._texts) <= 12
        assert len(parts._parts) <= 12


def test_members_of_different_types_are_never_shared() -> None:
    """A gate and a container may have the same JSON."""
    same = [{"name": "main"}]
    (pod,) = decoded(document("a", spec={"containers": same, "schedulingGates": same}))
    assert isinstance(pod.spec.containers[0], Container)
    assert isinstance(pod.spec.scheduling_gates[0], SchedulingGate)
