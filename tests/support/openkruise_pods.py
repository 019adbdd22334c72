"""The golden CloneSet `clone` and StatefulSet `asts` on real nodes, in the middle of rollouts by OpenKruise.

Two of four pods of each are updated, and the partition keeps the rest. On the CloneSet's updated pods requests to
restart their container are in progress, one of them almost done; and the nodes are pulling an image.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.meta import rfc3339
from flotilla_common.clock import SystemClock
from tests.support.midway import is_of
from tests.support.nodes import RealCluster
from tests.testkit.documents import Json

SPACE = "golden"
IMAGES = ("nginx:1.20", "nginx:1.22.0", "nginx:1.23.1")
PULLED = "nginx:1.23.1"
SETS = (("CloneSet", "clone"), ("StatefulSet", "asts"))
RESTARTED, WAITING = "clone-4rfr8", "clone-6p27j"
_NODES = {"node1": "real-0", "node2": "real-1", "node3": "real-2"}
_GATES = ("InPlaceUpdateReady", "KruisePodReady")


def at_real_nodes(golden: Sequence[Json]) -> list[Json]:
    """Return the sets with their revisions, claims and pods."""
    found = [item for item in golden if any(is_of(item, kind, name) for kind, name in SETS)]
    return [_at_real_node(item) if item["kind"] == "Pod" else item for item in found]


def _at_real_node(pod: Json) -> Json:
    """Return the pod bound to its real node, without the status that kubelets write."""
    text = msgspec.json.encode(pod).decode()
    for golden, real in _NODES.items():
        text = text.replace(f'"{golden}"', f'"{real}"')
    moved: Json = msgspec.json.decode(text)
    moved["metadata"]["annotations"].pop("apps.kruise.io/runtime-containers-meta")
    conditions = moved["status"]["conditions"]
    moved["status"] = {"conditions": [one for one in conditions if one["type"] in _GATES]}
    return moved


def pull_job() -> Json:
    """Return a pull job of which one node pulls, one has the request, and one has not yet."""
    now = rfc3339(SystemClock().now())
    spec: Json = {
        "image": PULLED,
        "imagePullPolicy": "IfNotPresent",
        "parallelism": 2,
        "completionPolicy": {"type": "Always"},
        "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": 60},
    }
    status = {"startTime": now, "desired": 3, "active": 2, "succeeded": 0, "failed": 0}
    return _object("ImagePullJob", "pull", SPACE) | {"spec": spec, "status": status}


def node_images(nodes: Sequence[str], job: Json) -> list[Json]:
    """Return the NodeImages with the job's requests so far, and the first node's report."""
    made = [_object("NodeImage", node, "") | {"spec": {}, "status": {"desired": 0}} for node in nodes]
    owner = {field: job[field] for field in ("apiVersion", "kind")}
    owner |= {field: job["metadata"][field] for field in ("name", "namespace", "uid")}
    policy = job["spec"]["pullPolicy"] | {"ttlSecondsAfterFinished": 900}
    name, _, tag = PULLED.partition(":")
    now = rfc3339(SystemClock().now())
    asked = {"tag": tag, "createdAt": now, "ownerReferences": [owner], "pullPolicy": policy}
    for image in made[:2]:
        image["spec"] = {"images": {name: {"tags": [asked | {"imagePullPolicy": "IfNotPresent"}]}}}
    said = {"tag": tag, "phase": "Pulling", "progress": 0, "startTime": now}
    made[0]["status"] = {"desired": 1, "pulling": 1, "imageStatuses": {name: {"tags": [said]}}}
    return made


def request(pod: Json, *, killed: bool) -> Json:
    """Return a request for the pod's container that OpenKruise's daemon is carrying out, as after admission."""
    [container] = pod["status"]["containerStatuses"]
    meta = pod["metadata"]
    context = {"containerID": container["containerID"], "restartCount": container["restartCount"]}
    state: Json = {"name": container["name"], "phase": "Recreating" if killed else "Pending", "isKilled": killed}
    made = _object("ContainerRecreateRequest", f"restart-{meta['name']}", SPACE)
    made["metadata"]["labels"] = {
        "crr.apps.kruise.io/active": "true",
        "crr.apps.kruise.io/node-name": pod["spec"]["nodeName"],
        "crr.apps.kruise.io/pod-uid": meta["uid"],
    }
    return made | {
        "spec": {
            "podName": meta["name"],
            "containers": [{"name": container["name"], "statusContext": context}],
            "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 1},
        },
        "status": {"phase": "Recreating", "containerRecreateStates": [state]},
    }


async def push_images(cluster: RealCluster, command: Sequence[str]) -> None:
    """Push the images of the pods, and the pulled one, into the registry of the nodes."""
    for name in IMAGES:
        await cluster.registry.push(name, command)


def _object(kind: str, name: str, namespace: str) -> Json:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": meta}
