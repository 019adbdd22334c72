"""What a kubelet makes of a pod, one step at a time, as pure functions of documents: containers start, are restarted
when their image changes, take other resources, and the pod becomes ready.

All goes well: images can be pulled, and what is started becomes ready. What does not run today, and is not touched,
stays as it is.
"""

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings, member, strings
from flotilla_common.api.keys import IN_PLACE_READY, POD_READY, RUNTIME_CONTAINERS_META
from flotilla_common.api.meta import rfc3339
from flotilla_common.workload.hashing import env_hash, plain_hash

STARTS_AGAIN = "RestartingContainer"
"""Why a container waits that has been stopped for its new image."""


def scheduled(pod: Json, node: str) -> Json:
    """The pod on its node."""
    return pod | {"spec": pod["spec"] | {"nodeName": node}}


def started(pod: Json, now: datetime) -> Json:
    """All containers run for the first time. Readiness gates that are not ours are opened by whoever has to."""
    statuses = [running(pod, container, {}, now) for container in mappings(pod["spec"].get("containers"))]
    held = mappings(member(pod, "status").get("conditions"))
    missing = sorted(foreign_gates(pod) - {one.get("type") for one in held})
    opened = [{"type": gate, "status": "True", "lastTransitionTime": rfc3339(now)} for gate in missing]
    begun = {"phase": "Running", "startTime": rfc3339(now), "containerStatuses": statuses}
    return observed(pod | {"status": member(pod, "status") | begun | {"conditions": held + opened}}, now)


def foreign_gates(pod: Json) -> set[str]:
    """The readiness gates that somebody else than our services has to open."""
    gates = {str(gate.get("conditionType")) for gate in mappings(pod["spec"].get("readinessGates"))}
    return gates - {IN_PLACE_READY, POD_READY}


def stopped(pod: Json, names: Collection[str], now: datetime) -> Json:
    """These containers have ended, and are about to start again."""
    waits = {"ready": False, "started": False, "state": {"waiting": {"reason": STARTS_AGAIN}}}
    return _with_statuses(pod, {one["name"]: one | waits for one in statuses_of(pod) if one["name"] in names}, now)


def restarted(pod: Json, names: Collection[str], now: datetime) -> Json:
    """These containers run what the spec says."""
    specs = {container["name"]: container for container in mappings(pod["spec"].get("containers"))}
    held = {one["name"]: one for one in statuses_of(pod) if one["name"] in names}
    return _with_statuses(pod, {name: running(pod, specs[name], held[name], now) for name in held}, now)


def statuses_of(pod: Json) -> list[Json]:
    """What is reported of the containers."""
    return mappings(member(pod, "status").get("containerStatuses"))


def _with_statuses(pod: Json, changed: Mapping[str, Json], now: datetime) -> Json:
    found = [changed.get(one["name"], one) for one in statuses_of(pod)]
    return observed(pod | {"status": pod["status"] | {"containerStatuses": found}}, now)


def running(pod: Json, container: Json, before: Json, now: datetime) -> Json:
    """The status of a container that has just been started."""
    again = member(before, "state", "waiting").get("reason") == STARTS_AGAIN
    image, restarts = container["image"], int(before.get("restartCount", 0)) + again
    made = hashlib.sha256(f"{pod['metadata']['uid']}/{container['name']}/{image}/{restarts}".encode()).hexdigest()
    return before | {
        "name": container["name"],
        "image": image,
        "imageID": f"model@sha256:{hashlib.sha256(image.encode()).hexdigest()}",
        "containerID": f"model://{made}",
        "ready": True,
        "started": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": rfc3339(now)}},
        "resources": container.get("resources") or {},
    }


def observed(pod: Json, now: datetime) -> Json:
    """The kubelet has seen the pod's newest spec, and says how it is."""
    status: Json = pod["status"]
    if generation := pod["metadata"].get("generation"):
        status = status | {"observedGeneration": generation}
    resources = {one["name"]: member(one, "resources") for one in mappings(pod["spec"].get("containers"))}
    statuses = [
        one | ({"resources": resources[one["name"]]} if "resources" in one and one["name"] in resources else {})
        for one in mappings(status.get("containerStatuses"))
    ]
    pod = pod | {"status": status | {"containerStatuses": statuses}}
    return reported(pod | {"status": _with_conditions(pod, now)})


def reported(pod: Json) -> Json:
    """What the node's agent says about the containers, if there is one."""
    annotations = strings(member(pod, "metadata").get("annotations"))
    if RUNTIME_CONTAINERS_META not in annotations:
        return pod
    decoded = msgspec.convert(pod, Pod)
    ids = {status.name: status.container_id for status in decoded.status.container_statuses}
    told: list[Json] = []
    for one in decoded.spec.containers:
        env = env_hash(one, decoded.metadata.labels, decoded.metadata.annotations)
        hashes = {"plainHash": plain_hash(one), "extractedEnvFromMetadataHash": env}
        told.append({"name": one.name, "containerID": ids.get(one.name, ""), "hashes": hashes})
    text = msgspec.json.encode({"containers": told}).decode()
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations | {RUNTIME_CONTAINERS_META: text}}}


def _with_conditions(pod: Json, now: datetime) -> Json:
    """Ready follows the containers and the readiness gates."""
    status: Json = pod["status"]
    stored = {one["type"]: one for one in mappings(status.get("conditions"))}
    statuses = mappings(status.get("containerStatuses"))
    ready = bool(statuses) and all(one.get("ready") for one in statuses) and status.get("phase") == "Running"
    gates = [gate["conditionType"] for gate in mappings(pod["spec"].get("readinessGates"))]
    serves = ready and all(stored.get(gate, {}).get("status") == "True" for gate in gates)
    for kind, value in (("ContainersReady", ready), ("Ready", serves)):
        if stored.get(kind, {}).get("status") != str(value):
            stored[kind] = {"type": kind, "status": str(value), "lastTransitionTime": rfc3339(now)}
    return status | {"conditions": list(stored.values())}
