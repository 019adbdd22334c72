"""Deployments and built-in StatefulSets of the model: their rollouts, step by step."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, CLAIM, DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.model import writes
from flotilla_common.model.cluster import Cluster
from flotilla_common.model.kubelet import is_ready
from tests.unit.cloneset.build import NOW

APP: Json = {"app": "web"}


def spec(image: str = "web:1", replicas: int = 3, **more: Any) -> Json:
    template = {"metadata": {"labels": APP}, "spec": {"containers": [{"name": "web", "image": image}]}}
    return {"replicas": replicas, "selector": {"matchLabels": APP}, "template": template, **more}


class Stage:
    """A cluster with one workload `web`, which has settled."""

    def __init__(self, resource: Resource, body: Json) -> None:
        self.resource = resource
        self.cluster = Cluster(NOW)
        self.objects = self.cluster.objects
        writes.create(self.objects, resource, {"metadata": {"name": "web", "namespace": "shop"}, "spec": body})
        self.settle()

    @property
    def workload(self) -> Json:
        found = self.objects.get(self.resource, "shop", "web")
        assert found is not None
        return found

    def pods(self, image: str = "", *, ready: bool = False) -> list[str]:
        """Return the names of the pods that run the image and are not terminating."""
        return sorted(
            pod["metadata"]["name"]
            for pod in self.objects.all(POD)
            if image in ("", pod["spec"]["containers"][0]["image"])
            and "deletionTimestamp" not in pod["metadata"]
            and (not ready or is_ready(pod))
        )

    def change(self, **members: Any) -> None:
        held = self.workload
        writes.store(self.objects, self.resource, held, held | {"spec": held["spec"] | members})

    def settle(self, check: Callable[[], object] = lambda: None) -> None:
        """Let everything happen; `check` sees each moment."""
        for _ in range(200):
            if not self.cluster.step():
                if self.cluster.wake_at is None:
                    return
                self.cluster.clock.time = self.cluster.wake_at
            check()
        raise AssertionError("never settles")


def image(name: str) -> Json:
    return spec(name)["template"]


def test_a_deployment_makes_pods_through_a_replica_set():
    stage = Stage(DEPLOYMENT, spec())
    (owner,) = stage.objects.all(REPLICA_SET)
    assert owner["metadata"]["labels"].keys() == {"app", "pod-template-hash"}
    assert (len(stage.pods(ready=True)), stage.workload["status"]["availableReplicas"]) == (3, 3)
    assert stage.workload["status"]["observedGeneration"] == 1


@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"), [(1, 0, 5, 4), (0, 1, 4, 3), (0, "50%", 4, 2), ("25%", "25%", 5, 4)]
)
def test_a_rolling_update_keeps_to_surge_and_unavailability(
    surge: int | str, unavailable: int | str, most: int, least: int
) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    stage = Stage(DEPLOYMENT, spec(replicas=4, strategy=rolling))
    seen: list[tuple[int, int]] = []
    stage.change(template=image("web:2"))
    stage.settle(lambda: seen.append((len(stage.pods()), len(stage.pods(ready=True)))))
    assert stage.pods("web:2", ready=True) == stage.pods()
    assert (len(stage.pods()), len(stage.objects.all(POD))) == (4, 4)
    assert max(number for number, _ in seen) == most
    assert min(ready for _, ready in seen) == least
    sizes = sorted(one["spec"]["replicas"] for one in stage.objects.all(REPLICA_SET))
    assert sizes == [0, 4]


def test_the_first_template_gets_its_replica_set_back():
    stage = Stage(DEPLOYMENT, spec())
    stage.change(template=image("web:2"))
    stage.settle()
    stage.change(template=image("web:1"))
    stage.settle()
    assert len(stage.pods("web:1")) == len(stage.pods()) == 3
    assert len(stage.objects.all(REPLICA_SET)) == 2


def test_recreate_waits_until_the_old_pods_are_gone():
    stage = Stage(DEPLOYMENT, spec(strategy={"type": "Recreate"}))
    mixed: list[bool] = []
    stage.change(template=image("web:2"))
    stage.settle(lambda: mixed.append(bool(stage.pods("web:1")) and bool(stage.pods("web:2"))))
    assert (len(stage.pods("web:2", ready=True)), any(mixed)) == (3, False)


def test_a_paused_deployment_is_scaled_and_not_updated():
    stage = Stage(DEPLOYMENT, spec())
    stage.change(template=image("web:2"), paused=True)
    stage.settle()
    assert len(stage.pods("web:1")) == 3


def test_a_deployment_is_scaled_down_by_its_newest_pods():
    stage = Stage(DEPLOYMENT, spec())
    kept = stage.pods()
    stage.change(replicas=5)
    stage.settle()
    stage.change(replicas=3)
    stage.settle()
    assert stage.pods() == kept


def test_minimal_readiness_holds_a_rolling_update_back():
    stage = Stage(DEPLOYMENT, spec(minReadySeconds=60))
    began = stage.cluster.clock.now()
    stage.change(template=image("web:2"))
    stage.settle()
    assert len(stage.pods("web:2")) == len(stage.pods()) == 3
    assert (stage.cluster.clock.now() - began).total_seconds() >= 180


def test_what_is_loaded_is_left_alone_until_it_changes():
    cluster = Cluster(NOW)
    owner = {"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec(), "status": {"replicas": 3}}
    cluster.objects.load(DEPLOYMENT, [msgspec.json.encode(owner)])
    assert not cluster.step()
    writes.store(cluster.objects, DEPLOYMENT, owner, owner | {"spec": spec("web:2")})
    assert not cluster.step(), "nobody knows its ReplicaSets"


def test_a_stateful_set_creates_one_pod_after_the_other_with_claims():
    templates = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    stage = Stage(BUILT_IN_STATEFUL_SET, spec(volumeClaimTemplates=templates))
    assert stage.pods(ready=True) == ["web-0", "web-1", "web-2"]
    created = [pod["metadata"]["creationTimestamp"] for pod in stage.objects.all(POD)]
    assert len(set(created)) == 3
    claims = {claim["metadata"]["name"]: claim["status"]["phase"] for claim in stage.objects.all(CLAIM)}
    assert claims == dict.fromkeys(("data-web-0", "data-web-1", "data-web-2"), "Bound")
    stage.change(replicas=1)
    stage.settle()
    assert (stage.pods(), len(stage.objects.all(CLAIM))) == (["web-0"], 3)


def test_pods_of_a_parallel_set_come_together():
    stage = Stage(BUILT_IN_STATEFUL_SET, spec(podManagementPolicy="Parallel"))
    assert len({pod["metadata"]["creationTimestamp"] for pod in stage.objects.all(POD)}) == 1


def test_a_stateful_set_is_updated_from_the_highest_ordinal_down_to_its_partition():
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    stage = Stage(BUILT_IN_STATEFUL_SET, spec(updateStrategy=rolling))
    down: list[int] = []
    order: list[str] = []

    def check() -> None:
        down.append(3 - len(stage.pods(ready=True)))
        order.extend(name for name in stage.pods("web:2") if name not in order)

    stage.change(template=image("web:2"))
    stage.settle(check)
    assert (order, max(down)) == (["web-2", "web-1"], 1)
    status = stage.workload["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 2)
    writes.delete(stage.objects, POD, stage.objects.get(POD, "shop", "web-0") or {}, {})
    stage.settle()
    assert stage.pods("web:1") == ["web-0"], "below the partition a pod comes back as it was"
    stage.change(updateStrategy={"type": "RollingUpdate"})
    stage.settle()
    assert stage.pods("web:2") == ["web-0", "web-1", "web-2"]
    assert stage.workload["status"]["currentRevision"] == status["updateRevision"]


def test_nothing_is_updated_on_delete_until_somebody_deletes():
    stage = Stage(BUILT_IN_STATEFUL_SET, spec(updateStrategy={"type": "OnDelete"}))
    stage.change(template=image("web:2"))
    stage.settle()
    assert stage.pods("web:2") == []
    writes.delete(stage.objects, POD, stage.objects.get(POD, "shop", "web-1") or {}, {})
    stage.settle()
    assert stage.pods("web:2") == ["web-1"]


def test_pods_go_with_their_deployment():
    stage = Stage(DEPLOYMENT, spec())
    writes.delete(stage.objects, DEPLOYMENT, stage.workload, {})
    while stage.cluster.step():
        pass
    assert (stage.objects.all(REPLICA_SET), stage.objects.all(POD)) == ([], [])
