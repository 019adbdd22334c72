"""The model of a cluster: writes by the rules of the apiserver, and the reactions of kubelets and others."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import CLAIM, NODE, POD, REPLICA_SET, Resource
from flotilla_common.control.plan import Create, Delete, Intent, Patch, PatchType
from flotilla_common.model.cluster import Cluster
from flotilla_common.model.writes import carry_out
from flotilla_common.model.writes import delete as delete_object
from tests.testkit import pods as pods_of
from tests.testkit.documents import conditions
from tests.testkit.pods import container, container_status
from tests.unit.cloneset.build import LONG_AGO, NOW

OLD = {"running": {"startedAt": LONG_AGO.isoformat()}}


def pod(name: str = "web", *, node: str = "n1", ready: bool = True, spec: Json | None = None, **metadata: Any) -> Json:
    """Return a pod that has run for an hour."""
    return pods_of.pod(
        name,
        "shop",
        **{"uid": f"uid-{name}", "version": 5, "generation": 1} | metadata,
        node=node,
        containers=[container("main", "nginx:1")],
        spec=spec,
        phase="Running",
        conditions=conditions({"ContainersReady": ready, "Ready": ready}),
        statuses=[
            container_status(
                "main", "docker.io/library/nginx:1", "id-1", containerID="c-1", ready=ready, restartCount=0, state=OLD
            )
        ],
    )


def made(name: str = "new", **spec: Any) -> Create:
    body = {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec},
    }
    return Create(resource=POD, namespace="shop", name=name, intent=Intent.CREATE, cause="scale up", body=body)


def patch(
    body: Json, *, subresource: str = "", kind: PatchType = PatchType.STRATEGIC, resource: Resource = POD
) -> Patch:
    return Patch(
        resource=resource,
        namespace="shop",
        name="web",
        intent=Intent.UPDATE,
        cause="c",
        body=body,
        subresource=subresource,
        patch_type=kind,
    )


def delete(resource: Resource = POD, name: str = "web") -> Delete:
    return Delete(resource=resource, namespace="shop", name=name, intent=Intent.DELETE, cause="c", uid="")


IMAGE: Json = {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}


class Stage:
    """A cluster with these objects."""

    def __init__(self, *pods: Json, **others: Any) -> None:
        self.cluster = Cluster(NOW)
        self.objects = self.cluster.objects
        self._load(POD, pods)
        for resource, documents in others.pop("others", {}).items():
            self._load(resource, documents)
        self.cluster.pods.meet()

    def _load(self, resource: Resource, documents: Any) -> None:
        self.objects.load(resource, [msgspec.json.encode(one) for one in documents])

    def pod(self, name: str = "web") -> Json:
        found = self.objects.get(POD, "shop", name)
        assert found is not None
        return found

    def status(self, name: str = "web") -> Json:
        return self.pod(name)["status"]["containerStatuses"][0]

    def ready(self, name: str = "web") -> bool:
        return {one["type"]: one["status"] for one in self.pod(name)["status"].get("conditions", [])}.get(
            "Ready"
        ) == "True"

    def until(self, check: Callable[[], bool], steps: int = 10) -> None:
        for _ in range(steps):
            if check():
                return
            assert self.cluster.step(), "nothing moves any more"
        raise AssertionError("not in so many steps")


def test_a_created_pod_gets_a_node_starts_and_serves():
    stage = Stage(
        others={NODE: [{"metadata": {"name": "n9"}}, {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}}]}
    )
    write = carry_out(stage.objects, made())
    assert (write.before, write.effective, stage.pod("new")["status"]) == (None, True, {"phase": "Pending"})
    stage.until(lambda: stage.ready("new"))
    assert stage.pod("new")["spec"]["nodeName"] == "n9"
    assert stage.cluster.clock.now() - NOW == timedelta(seconds=2)
    assert not stage.cluster.step()


def test_a_name_that_is_taken_is_refused():
    stage = Stage(pod())
    write = carry_out(stage.objects, made("web"))
    assert (write.problem, write.effective) == ("pods 'web' already exists", False)


def test_gates_of_ours_stay_closed_and_those_of_others_are_opened():
    stage = Stage()
    gates = [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "example.com/balancer"}]
    carry_out(stage.objects, made("web", readinessGates=gates))
    while stage.cluster.step():
        pass
    conditions = {one["type"]: one["status"] for one in stage.pod()["status"]["conditions"]}
    begun = dict.fromkeys(("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady"), "True")
    assert conditions == begun | {"example.com/balancer": "True", "Ready": "False"}
    opened = {"status": {"conditions": [{"type": "InPlaceUpdateReady", "status": "True"}]}}
    carry_out(stage.objects, patch(opened, subresource="status"))
    stage.until(stage.ready)


def test_another_image_restarts_the_container_once():
    stage = Stage(pod())
    write = carry_out(stage.objects, patch(IMAGE))
    assert stage.pod()["metadata"]["generation"] == 2
    assert write.before is not None
    assert write.before["spec"]["containers"][0]["image"] == "nginx:1"
    assert stage.cluster.step()
    assert not stage.ready()
    stage.until(stage.ready)
    assert (stage.status()["image"], stage.status()["restartCount"]) == ("nginx:2", 1)
    assert stage.pod()["status"]["observedGeneration"] == 2
    assert not stage.cluster.step()


def test_a_subresource_changes_its_part_alone():
    stage = Stage(pod())
    carry_out(
        stage.objects,
        patch(IMAGE | {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "X"}}, subresource="status"),
    )
    assert (stage.pod()["spec"]["containers"][0]["image"], stage.pod()["status"]["phase"]) == ("nginx:1", "X")
    assert stage.pod()["metadata"]["labels"] == {"a": "b"}
    carry_out(stage.objects, patch({"status": {"phase": "Y"}, "metadata": {"labels": {"a": None}, "uid": "other"}}))
    assert (stage.pod()["status"]["phase"], stage.pod()["metadata"].get("labels")) == ("X", None)
    assert (stage.pod()["metadata"]["uid"], stage.pod()["metadata"]["generation"]) == ("uid-web", 1)


def test_a_patch_that_changes_nothing_makes_no_version():
    stage = Stage(pod())
    write = carry_out(stage.objects, patch({"spec": {"nodeName": "n1"}}))
    assert (write.effective, stage.pod()["metadata"]["resourceVersion"]) == (False, "5")
    assert carry_out(stage.objects, patch({}, resource=CLAIM)).problem == "it does not exist"


def test_a_deleted_pod_ends_first_and_finalizers_keep_it():
    stage = Stage(pod(), pod("held", finalizers=["example.com/mine"]), pod("nowhere", node=""))
    carry_out(stage.objects, delete())
    assert stage.pod()["metadata"]["deletionGracePeriodSeconds"] == 30
    carry_out(stage.objects, delete(name="held"))
    assert carry_out(stage.objects, delete(name="nowhere")).after is None
    stage.until(lambda: stage.objects.get(POD, "shop", "web") is None)
    assert not stage.cluster.step()
    assert stage.pod("held")["metadata"]["finalizers"]


@pytest.mark.parametrize(
    ("state", "trouble"),
    [
        ({"waiting": {"reason": "ImagePullBackOff"}}, "ErrImagePull"),
        ({"waiting": {"reason": "ContainerCreating"}}, ""),
        (OLD, "ReadinessProbeFailed"),
        ({"running": {"startedAt": NOW.isoformat()}}, ""),
    ],
)
def test_what_is_broken_stays_so_and_what_starts_becomes_ready(state: Json, trouble: str):
    sick = pod(ready=False)
    sick["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 80}}
    sick["status"]["containerStatuses"][0]["state"] = state
    stage = Stage(sick)
    assert [cause.code for cause in stage.cluster.pods.troubles.values()] == ([trouble] if trouble else [])
    while stage.cluster.step():
        pass
    assert stage.ready() is not bool(trouble)
    carry_out(stage.objects, patch(IMAGE))
    stage.until(stage.ready)
    assert stage.cluster.pods.troubles == {}


def test_what_does_not_get_on_today_does_not_in_the_play():
    unscheduled = pod("unscheduled", node="", ready=False)
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    unscheduled["status"] = {"phase": "Pending", "conditions": [told]}
    overdue = pod("overdue", deletionTimestamp=LONG_AGO.isoformat())
    stage = Stage(unscheduled, overdue, pod())
    codes = {uid: cause.code for uid, cause in stage.cluster.pods.troubles.items()}
    assert codes == {"uid-unscheduled": "Unschedulable", "uid-overdue": "TerminationOverdue"}
    assert not stage.cluster.step()


def test_a_broken_pod_can_be_deleted():
    sick = pod(ready=False)
    sick["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
    stage = Stage(sick)
    assert stage.cluster.pods.troubles
    carry_out(stage.objects, delete())
    stage.until(lambda: stage.objects.get(POD, "shop", "web") is None)
    assert stage.cluster.pods.troubles == {}


def test_an_update_that_the_kubelet_has_not_seen_goes_on():
    midway = pod(generation=2)
    midway["spec"]["containers"][0]["image"] = "nginx:2"
    midway["status"] |= {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "False"}]}
    stage = Stage(midway)
    stage.until(lambda: stage.status()["image"] == "nginx:2")
    assert stage.status()["restartCount"] == 1


def test_an_update_that_is_stuck_today_does_not_go_on():
    stuck = pod(ready=False)
    stuck["spec"]["containers"][0]["image"] = "nginx:typo"
    stuck["status"]["containerStatuses"][0] |= {"image": "", "state": {"waiting": {"reason": "ErrImagePull"}}}
    stuck["status"]["conditions"] += [{"type": "InPlaceUpdateReady", "status": "False"}]
    stage = Stage(stuck)
    while stage.cluster.step():
        pass
    assert (stage.status()["image"], stage.ready()) == ("", False)


def test_the_agent_reports_containers_where_it_did_before():
    stage = Stage(pod(annotations={"apps.kruise.io/runtime-containers-meta": "{}"}))
    carry_out(stage.objects, patch(IMAGE))
    stage.until(lambda: stage.status()["image"] == "nginx:2" and stage.ready())
    text = stage.pod()["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"]
    assert stage.status()["containerID"] in text


def test_claims_are_bound_and_protected():
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web"}}
    stage = Stage(pod(spec={"volumes": [volume]}))
    body = {
        "metadata": {"name": "data-web", "namespace": "shop"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
    }
    carry_out(
        stage.objects,
        Create(resource=CLAIM, namespace="shop", name="data-web", intent=Intent.CREATE, cause="c", body=body),
    )
    stage.until(lambda: "status" in (stage.objects.get(CLAIM, "shop", "data-web") or {}))
    carry_out(stage.objects, delete(CLAIM, "data-web"))
    assert not stage.cluster.step()
    carry_out(stage.objects, delete())
    stage.until(lambda: stage.objects.get(CLAIM, "shop", "data-web") is None)


def test_dependents_go_with_their_last_owner():
    owners = [{"kind": "Pod", "name": "web", "uid": "uid-web"}, {"kind": "Pod", "name": "b", "uid": "uid-b"}]
    one = {"metadata": {"name": "one", "namespace": "shop", "uid": "1", "ownerReferences": owners[:1]}, "status": {}}
    both = {"metadata": {"name": "both", "namespace": "shop", "uid": "2", "ownerReferences": owners}, "status": {}}
    stage = Stage(pod(), pod("b"), others={CLAIM: [one, both]})
    carry_out(stage.objects, delete())
    while stage.cluster.step():
        pass
    (left,) = stage.objects.all(CLAIM)
    assert (left["metadata"]["name"], left["metadata"]["ownerReferences"]) == ("both", owners[1:])


def deleted(policy: str, **reference: Any) -> Stage:
    """Return a ReplicaSet with one pod, which was asked to go in this way."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": "u"} | reference
    meta = {"name": "set", "namespace": "shop", "uid": "u"}
    stage = Stage(pod(ownerReferences=[owner]), others={REPLICA_SET: [{"metadata": meta, "spec": {"replicas": 1}}]})
    delete_object(stage.objects, REPLICA_SET, stage.objects.all(REPLICA_SET)[0], {"propagationPolicy": policy})
    return stage


def rest(stage: Stage) -> list[tuple[int, int]]:
    """Return how many ReplicaSets and pods exist, moment by moment."""
    seen = [(len(stage.objects.all(REPLICA_SET)), len(stage.objects.all(POD)))]
    while stage.cluster.step():
        seen.append((len(stage.objects.all(REPLICA_SET)), len(stage.objects.all(POD))))
    return seen


def test_in_the_foreground_an_owner_waits_for_those_that_block_it():
    seen = rest(deleted("Foreground", blockOwnerDeletion=True))
    assert (seen[0], seen[-1], (0, 1) in seen) == ((1, 1), (0, 0), False)


def test_in_the_background_an_owner_goes_first():
    seen = rest(deleted("Background", blockOwnerDeletion=True))
    assert (seen[0], seen[-1]) == ((0, 1), (0, 0))


def test_orphans_stay_and_lose_their_owner():
    stage = deleted("Orphan")
    assert rest(stage)[-1] == (0, 1)
    assert "ownerReferences" not in stage.pod()["metadata"]


def test_a_claim_grows_and_never_shrinks():
    def claim(size: str) -> Json:
        return {"spec": {"resources": {"requests": {"storage": size}}}}

    status = {"phase": "Bound", "capacity": {"storage": "2Gi"}, "conditions": [{"type": "Resizing", "status": "True"}]}
    held = {"metadata": {"name": "data-web", "namespace": "shop", "uid": "c"}, "status": status, **claim("1Gi")}
    stage = Stage(others={CLAIM: [held]})
    assert not stage.cluster.step()
    grown = Patch(resource=CLAIM, namespace="shop", name="data-web", intent=Intent.CLAIM, cause="c", body=claim("3Gi"))
    carry_out(stage.objects, grown)
    stage.until(lambda: stage.objects.all(CLAIM)[0]["status"] == {"phase": "Bound", "capacity": {"storage": "3Gi"}})


def test_agents_that_speak_pull_and_silent_ones_do_not():
    spec = {"images": {"nginx": {"tags": [{"tag": "1", "version": 2}]}}}
    heard = {"metadata": {"name": "a", "uid": "a"}, "spec": spec, "status": {"desired": 0}}
    stage = Stage(others={NODE_IMAGE: [heard, {"metadata": {"name": "b", "uid": "b"}, "spec": spec}]})
    assert stage.cluster.step()
    assert not stage.cluster.step()
    first, second = stage.objects.all(NODE_IMAGE)
    (entry,) = first["status"]["imageStatuses"]["nginx"]["tags"]
    assert (entry["phase"], entry["version"], "completionTime" in entry) == ("Succeeded", 2, True)
    assert "status" not in second


@pytest.mark.parametrize("ordered", [False, True])
def test_containers_are_recreated_as_asked(ordered: bool):
    sample = pod()
    sample["spec"]["containers"] += [{"name": "side", "image": "envoy:1"}]
    sample["status"]["containerStatuses"] += [
        sample["status"]["containerStatuses"][0] | {"name": "side", "image": "envoy:1"}
    ]
    request = {
        "metadata": {"name": "again", "namespace": "shop", "uid": "r"},
        "spec": {
            "podName": "web",
            "containers": [{"name": "side"}, {"name": "main"}],
            "strategy": {"orderedRecreate": ordered},
        },
    }
    stage = Stage(sample, others={RECREATE_REQUEST: [request]})
    seen: list[str] = []

    def over() -> bool:
        seen.extend(one["name"] for one in stage.pod()["status"]["containerStatuses"] if one["restartCount"])
        return (stage.objects.get(RECREATE_REQUEST, "shop", "again") or {})["status"].get("phase") == "Completed"

    stage.cluster.step()
    stage.until(over, 20)
    assert sorted(set(seen)) == ["main", "side"]
    assert (seen[0] == "side") is ordered or set(seen[:2]) == {"main", "side"}
    assert [one["restartCount"] for one in stage.pod()["status"]["containerStatuses"]] == [1, 1]
    assert stage.ready()


def test_a_silent_agent_recreates_nothing():
    request = {
        "metadata": {"name": "again", "namespace": "shop", "uid": "r"},
        "spec": {"podName": "web", "containers": []},
    }
    images = [{"metadata": {"name": "n1", "uid": "n"}}]
    stage = Stage(pod(), others={RECREATE_REQUEST: [request], NODE_IMAGE: images})
    assert not stage.cluster.step()
