"""The memory that pods of a large cluster take."""

import gc
import tracemalloc

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from tests.testkit.pods import container, pod
from tests.unit.console.model.worlds import World, owned_by

PODS = 4000
MOST_BYTES = 4096
"""Bytes of a pod, with the parts that are remembered to be shared: 30,000 leave room for the rest of 250 MiB."""


def _pod(number: int) -> Json:
    at = f"2026-01-01T{number // 60 % 24:02}:{number % 60:02}:00Z"
    image = "registry.example/shop/web:1"
    types = (
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
        "PodReadyToStartContainers",
        "InPlaceUpdateReady",
    )
    status = {
        "name": "main",
        "image": image,
        "imageID": f"registry.example/shop/web@sha256:{'a' * 64}",
        "containerID": f"containerd://{number:064}",
        "ready": True,
        "state": {"running": {"startedAt": at}},
    }
    return pod(
        f"web-{number:05}",
        "shop",
        uid=f"8f2c6a58-1111-2222-3333-{number:012}",
        version=number + 1,
        created=at,
        node=f"node-{number % 100}",
        phase="Running",
        gates=["InPlaceUpdateReady"],
        containers=[container(image=image, env=[{"name": f"E{one}", "value": "x"} for one in range(20)])],
        conditions=[{"type": one, "status": "True", "lastTransitionTime": at} for one in types],
        statuses=[status],
        status={"podIP": f"10.0.{number // 250}.{number % 250}"},
        labels={
            "app": "web",
            "controller-revision-hash": "web-2",
            "apps.kruise.io/cloneset-instance-id": f"{number:05}",
        },
        annotations={
            "cni.example/status": "x" * 500,
            "apps.kruise.io/inplace-update-state": f'{{"revision":"web-2","updateTimestamp":"{at}"}}',
        },
        ownerReferences=[owned_by(CLONE_SET, "web")],
    )


def test_a_pod_takes_little_memory() -> None:
    world = World()
    bodies = [msgspec.json.encode(_pod(number)) for number in range(PODS)]
    gc.collect()
    tracemalloc.start()
    try:
        for body in bodies:
            world.model.mirror.written(POD, body)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(world.model.pods) == PODS
    assert taken / PODS < MOST_BYTES
