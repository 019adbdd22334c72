"""The dry run's survey of objects: their number by kind, and ongoing operations."""

import pytest

from flotilla_cli.adopt.report import KindSurvey, report, under_way
from flotilla_common.api.resources import Resource
from tests.testkit.documents import Json


def workload(**status: int) -> Json:
    there = {"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4, "updatedReadyReplicas": 4}
    return {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"replicas": 4}, "status": there | status}


@pytest.mark.parametrize(
    ("live", "strategy", "said"),
    [
        pytest.param(workload(), {}, "", id="rests"),
        pytest.param(
            workload(updatedReplicas=2, updatedReadyReplicas=2),
            {"rollingUpdate": {"partition": 2}},
            "2 of 4 pods updated, partition 2",
            id="held by its partition",
        ),
        pytest.param(
            workload(updatedReplicas=2, updatedReadyReplicas=1),
            {"partition": "50%", "paused": True},
            "2 of 4 pods updated, 1 of 2 updated ones ready, partition 50%, paused",
            id="v1alpha1, paused",
        ),
        pytest.param(workload(updatedReadyReplicas=3, readyReplicas=3), {}, "3 of 4 updated ones ready", id="in place"),
        pytest.param(workload(replicas=5, readyReplicas=5), {}, "5 pods, 4 wanted", id="scaled"),
        pytest.param(workload(readyReplicas=3), {}, "3 of 4 ready", id="not ready"),
    ],
)
def test_workloads(live: Json, strategy: Json, said: str):
    live["spec"]["updateStrategy"] = strategy
    for kind in ("CloneSet", "StatefulSet"):
        assert under_way(resource(kind), live) == (f"{kind} shop/web: {said}" if said else "")


def resource(kind: str) -> Resource:
    """Return that of the kind's CRD."""
    return Resource("apps.kruise.io", "v1beta1", f"{kind.lower()}s", kind)


DAEMONS = {
    "desiredNumberScheduled": 3,
    "currentNumberScheduled": 3,
    "updatedNumberScheduled": 3,
    "numberReady": 3,
    "numberMisscheduled": 0,
}


@pytest.mark.parametrize(
    ("status", "rolling", "said"),
    [
        pytest.param({}, {}, "", id="rests"),
        pytest.param(
            {"updatedNumberScheduled": 2}, {"partition": 1}, "2 of 3 nodes updated, partition 1", id="held by partition"
        ),
        pytest.param({"numberReady": 2}, {"paused": True}, "2 of 3 ready, paused", id="not ready, paused"),
        pytest.param(
            {"currentNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 2},
            {},
            "2 of 3 nodes updated, 2 of 3 nodes have their pod",
            id="a node without a pod",
        ),
        pytest.param({"numberMisscheduled": 1}, {}, "1 misscheduled", id="misscheduled"),
    ],
)
def test_daemons(status: Json, rolling: Json, said: str):
    live = {
        "metadata": {"namespace": "shop", "name": "probe"},
        "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}},
        "status": DAEMONS | status,
    }
    assert under_way(resource("DaemonSet"), live) == (f"DaemonSet shop/probe: {said}" if said else "")


@pytest.mark.parametrize(
    ("kind", "spec", "status", "said"),
    [
        pytest.param("ContainerRecreateRequest", {"podName": "web-x"}, {}, "pod web-x, not started", id="request"),
        pytest.param(
            "ContainerRecreateRequest",
            {"podName": "web-x"},
            {"phase": "Recreating"},
            "pod web-x, Recreating",
            id="begun",
        ),
        pytest.param("ContainerRecreateRequest", {"podName": "web-x"}, {"phase": "Completed"}, "", id="over"),
        pytest.param(
            "ImagePullJob",
            {"image": "nginx:1.27"},
            {"desired": 3, "succeeded": 1, "active": 2},
            "nginx:1.27 on 1 of 3 nodes, 2 pulling",
            id="pulls",
        ),
        pytest.param("ImagePullJob", {}, {"completionTime": "2026-11-24T00:00:00Z"}, "", id="pulled"),
        pytest.param("ImageListPullJob", {}, {"desired": 2, "completed": 1}, "1 of 2 images done", id="list"),
        pytest.param("NodeImage", {}, {"desired": 2, "pulling": 1}, "1 of 2 images being pulled", id="node"),
        pytest.param("NodeImage", {}, {"desired": 2, "pulling": 0}, "", id="idle node"),
        pytest.param("ResourceDistribution", {}, {"desired": 2, "succeeded": 2}, "", id="distributed"),
        pytest.param(
            "ResourceDistribution",
            {},
            {"desired": 2, "failed": 2},
            "0 of 2 namespaces have their copy",
            id="not distributed",
        ),
        pytest.param("PersistentPodState", {}, {"podStates": {}}, "", id="remembers"),
        pytest.param("BroadcastJob", {}, {"completionTime": "2026-11-24T00:00:00Z"}, "", id="ran on all nodes"),
        pytest.param(
            "BroadcastJob",
            {"paused": True},
            {"desired": 3, "succeeded": 1, "active": 1},
            "1 of 3 nodes done, 1 pods at work, paused",
            id="runs on nodes",
        ),
        pytest.param("AdvancedCronJob", {}, {"lastScheduleTime": "2026-11-24T00:00:00Z"}, "", id="waits for its time"),
        pytest.param("AdvancedCronJob", {}, {"active": [{"name": "a-1"}]}, "1 run active", id="has a run"),
        pytest.param("EphemeralJob", {}, {"match": 3, "succeeded": 1, "failed": 1}, "2 of 3 pods done", id="injects"),
        pytest.param("EphemeralJob", {}, {"match": 1, "completionTime": "2026-11-24T00:00:00Z"}, "", id="injected all"),
        pytest.param("PodUnavailableBudget", {}, {"unavailableAllowed": 0}, "", id="protects"),
        pytest.param("SidecarSet", {}, {"matchedPods": 3, "updatedPods": 3}, "", id="injected"),
        pytest.param(
            "SidecarSet", {"updateStrategy": {"type": "NotUpdate"}}, {"matchedPods": 3}, "", id="injected for good"
        ),
        pytest.param(
            "SidecarSet",
            {"updateStrategy": {"partition": 2, "paused": True}},
            {"matchedPods": 3, "updatedPods": 1},
            "1 of 3 pods have the newest sidecars, partition 2, paused",
            id="sidecars held",
        ),
    ],
)
def test_other_kinds(kind: str, spec: Json, status: Json, said: str):
    live = {"metadata": {"name": "x"}, "spec": spec, "status": status}
    assert under_way(resource(kind), live) == (f"{kind} x: {said}" if said else "")


def test_the_report():
    lines = [
        KindSurvey("CloneSet", served=True, count=12, under_way=["CloneSet shop/web: 2 of 4 pods updated"]),
        KindSurvey("NodeImage", served=True, count=None),
        KindSurvey("PodProbeMarker", served=False, count=0),
        KindSurvey("PodUnavailableBudget", served=False, count=3),
    ]
    assert list(report(lines)) == [
        "continued by Flotilla:",
        "  CloneSet                      12",
        "  NodeImage                 cannot be read now",
        "left as it is, without a controller:",
        "  PodUnavailableBudget           3",
        "in progress, and continued by Flotilla:",
        "  CloneSet shop/web: 2 of 4 pods updated",
    ]
