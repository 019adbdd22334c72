"""Models node agents: they pull images, run probes and recreate containers as requested.

An agent that has never reported stays silent.
"""

from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings, member, strings, text
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    PRE_RECREATE_GRACE,
    RECREATE_REQUEST,
    RECREATING,
)
from flotilla_common.api.kinds.containerrecreaterequest.types import SUCCEEDED as RECREATED
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, SUCCEEDED
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE
from flotilla_common.api.kinds.nodepodprobe.types import SUCCEEDED as PROBE_SUCCEEDED
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.model import kubelet
from flotilla_common.model.kubelet import statuses_of
from flotilla_common.model.store import Objects
from flotilla_common.workload.hashing import env_hash, plain_hash


def pulled(image: Json, now: datetime) -> Json:
    """Return the NodeImage with every task answered: new pulls succeed, finished ones stay as they are."""
    status = member(image, "status")
    held = member(status, "imageStatuses")
    answers: Json = {}
    for name, spec in member(image, "spec", "images").items():
        known = {one["tag"]: one for one in mappings(member(held, name).get("tags"))}
        answers[name] = {"tags": [_answer(tag, known.get(tag["tag"], {}), now) for tag in mappings(spec.get("tags"))]}
    return image | {"status": status | {"imageStatuses": answers}} if answers != held else image


def _answer(task: Json, entry: Json, now: datetime) -> Json:
    version = task.get("version", 0)
    if entry.get("version", 0) == version and "completionTime" in entry:
        return entry
    times = {"startTime": rfc3339(now), "completionTime": rfc3339(now)}
    return {"tag": task["tag"], "phase": SUCCEEDED, "progress": 100, "version": version, **times}


def probed(found: Json, now: datetime) -> Json:
    """Return the NodePodProbe with a result for every probe: new ones succeed, existing results stay."""
    held = {
        (pod["uid"], state["name"]): state
        for pod in mappings(member(found, "status").get("podProbeStatuses"))
        for state in mappings(pod.get("probeStates"))
    }
    success = {"state": PROBE_SUCCEEDED, "lastProbeTime": rfc3339(now), "lastTransitionTime": rfc3339(now)}
    entries: list[Json] = [
        {key: pod[key] for key in ("name", "namespace", "uid")}
        | {
            "probeStates": [
                held.get((pod["uid"], probe["name"])) or {"name": probe["name"], **success}
                for probe in mappings(pod.get("probes"))
            ]
        }
        for pod in mappings(member(found, "spec").get("podProbes"))
    ]
    lacks = any(state not in held.values() for pod in entries for state in mappings(pod["probeStates"]))
    return found | {"status": member(found, "status") | {"podProbeStatuses": entries}} if lacks else found


def recreated(request: Json, pod: Json, now: datetime) -> tuple[Json, Json]:
    """Return the request and its pod a step further.

    Containers are stopped, all at once or one after the other, and are done when they are ready again.
    """
    status = member(request, "status")
    if status.get("phase") != RECREATING:
        return request | {"status": status | {"phase": RECREATING}}, pod
    wanted = [one["name"] for one in mappings(request["spec"].get("containers"))]
    done = [one["name"] for one in mappings(status.get("containerRecreateStates"))]
    back = {name for name in done if statuses_of(pod).get(name, {}).get("ready")}
    due = [name for name in wanted if name not in done]
    if member(request, "spec", "strategy").get("orderedRecreate"):
        due = due[:1] if len(back) == len(done) else []
    states = [
        {"name": name, "phase": RECREATED if name in back else RECREATING, "isKilled": True} for name in [*done, *due]
    ]
    over = {"phase": COMPLETED, "completionTime": rfc3339(now)} if len(back) == len(wanted) else {}
    pod = kubelet.stopped(pod, dict.fromkeys(due, 0), now) if due else pod
    return request | {"status": status | {"containerRecreateStates": states} | over}, pod


class Agents:
    """The agents of all nodes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def step(self) -> bool:
        """Answer open image tasks, report results of new probes, and advance each open request."""
        moved = [self._pull(image) for image in self._objects.all(NODE_IMAGE)]
        moved += [self._probe(found) for found in self._objects.all(NODE_POD_PROBE)]
        moved += [self._go_on(request) for request in self._objects.all(RECREATE_REQUEST)]
        return any(moved)

    def _pull(self, image: Json) -> bool:
        after = pulled(image, self._objects.clock.now()) if speaks(image) else image
        return after != image and bool(self._objects.put(NODE_IMAGE, after))

    def _probe(self, found: Json) -> bool:
        after = probed(found, self._objects.clock.now())
        return after != found and bool(self._objects.put(NODE_POD_PROBE, after))

    def _go_on(self, request: Json) -> bool:
        place = request["metadata"].get("namespace", ""), text(member(request, "spec").get("podName"))
        pod, now, phase = (
            self._objects.get(POD, *place),
            self._objects.clock.now(),
            member(request, "status").get("phase"),
        )
        if pod is None or phase == COMPLETED or not self._answers(pod):
            return False
        if phase != RECREATING or not _in_grace(request, now):  # else wait
            after, changed = recreated(request, pod, now)
            self._objects.put(RECREATE_REQUEST, after)
            if changed != pod:
                self._objects.put(POD, changed)
        return True

    def _answers(self, pod: Json) -> bool:
        """Report whether the agent of the pod's node is active by its NodeImage, or there are no NodeImages."""
        images = self._objects.all(NODE_IMAGE)
        node = member(pod, "spec").get("nodeName")
        return not images or any(speaks(image) for image in images if image["metadata"]["name"] == node)


def speaks(image: Json) -> bool:
    """Report whether the node's agent has reported; without work it does so once."""
    return "desired" in member(image, "status")


def _in_grace(request: Json, now: datetime) -> bool:
    """Report whether the grace period in which the pod is out of service has yet to end."""
    seconds = member(request, "spec", "strategy").get("unreadyGracePeriodSeconds")
    if seconds is None:
        return False
    conditions = mappings(member(request, "status").get("conditions"))
    began = next((one for one in conditions if one.get("type") == PRE_RECREATE_GRACE), None)
    if began is None:
        return True
    return (now - datetime.fromisoformat(began["lastTransitionTime"])).total_seconds() < seconds


def reported(pod: Json) -> Json:
    """Return the pod with the agent's report about its containers updated, if it has one."""
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
    body = msgspec.json.encode({"containers": told}).decode()
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations | {RUNTIME_CONTAINERS_META: body}}}
