"""Models scheduler and kubelet: transitions and statuses of a pod, as pure functions of documents.

The status says what runs. The caller decides when a transition is due and whether it succeeds.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.keys import IN_PLACE_READY, POD_READY
from flotilla_common.api.meta import rfc3339

ENDED = ("Succeeded", "Failed")
"""Phases of pods whose containers have ended for good."""

_DONE: Json = {"ready": False, "started": False}


def statuses_of(pod: Json, part: str = "containerStatuses") -> dict[str, Json]:
    """Return the reported container statuses by name."""
    return {str(one["name"]): one for one in mappings(member(pod, "status").get(part))}


def running(pod: Json, container: Json, before: Json, now: datetime) -> Json:
    """Return the status of a container that has just been started; if it has run before, as a restart."""
    name, image = str(container["name"]), str(container["image"])
    restarts = int(before.get("restartCount", 0)) + bool(before.get("containerID"))
    ended = member(before, "state").get("terminated")
    return {
        "name": name,
        "image": image,
        "imageID": f"registry.test/{image.partition(':')[0]}@sha256:{_digest(image)}",
        "containerID": f"containerd://{_digest(pod['metadata']['uid'], name, str(restarts))}",
        "ready": True,
        "started": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": rfc3339(now)}},
        "lastState": {"terminated": ended} if ended else before.get("lastState", {}),
        "resources": container.get("resources") or {},
    }


def waiting(container: Json, reason: str) -> Json:
    """Return the status of a container that has never run."""
    held = {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}
    return held | _DONE | {"state": {"waiting": {"reason": reason}}, "lastState": {}}


def terminated(status: Json, now: datetime, code: int = 0) -> Json:
    """Return the status of a container that ran until now, with the image of that run."""
    end = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": rfc3339(now)}
    return status | _DONE | {"state": {"terminated": end}}


def restarting(status: Json, now: datetime, code: int = 0) -> Json:
    """Return the status of a container that ran until now and is about to be started again."""
    ended = terminated(status, now, code)
    return ended | {"state": {"waiting": {"reason": "ContainerCreating"}}, "lastState": ended["state"]}


def is_over(pod: Json, status: Json) -> bool:
    """Report whether the container has ended and is not started again."""
    end = member(status, "state", "terminated")
    policy = pod["spec"].get("restartPolicy", "Always")
    return bool(end) and (policy == "Never" or (policy == "OnFailure" and not end["exitCode"]))


def phase_of(pod: Json, found: Iterable[Json]) -> str:
    """Return the phase of a pod whose containers have all ended; empty otherwise."""
    statuses = list(found)
    if not statuses or not all(is_over(pod, one) for one in statuses):
        return ""
    return "Failed" if any(one["state"]["terminated"]["exitCode"] for one in statuses) else "Succeeded"


def conditions_of(pod: Json, now: datetime, *, ending: bool = False) -> list[Json]:
    """Return all conditions: the kubelet's own as of now, all others as they are stored."""
    stored = {str(one["type"]): one for one in mappings(member(pod, "status").get("conditions"))}
    ready = all(one.get("ready") for one in statuses_of(pod).values()) and not ending
    gates = [str(gate["conditionType"]) for gate in mappings(pod["spec"].get("readinessGates"))]
    serves = ready and all(stored.get(gate, {}).get("status") == "True" for gate in gates)
    why = "" if ready else "ContainersNotReady"
    wanted = {
        "PodReadyToStartContainers": (not ending, ""),
        "Initialized": (True, ""),
        "ContainersReady": (ready, why),
        "Ready": (serves, why or ("" if serves else "ReadinessGatesNotReady")),
    }
    for kind, (holds, reason) in wanted.items():
        old, status = stored.get(kind, {}), str(holds)
        if old.get("status") != status or old.get("reason", "") != reason:
            since = old.get("lastTransitionTime") if old.get("status") == status else rfc3339(now)
            told = {"type": kind, "status": status, "reason": reason, "lastTransitionTime": since}
            stored[kind] = {key: value for key, value in told.items() if value}
    return list(stored.values())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


Obstacle = Callable[[Json], str]
"""Returns why a container cannot be created, as a waiting reason; empty if it can."""


def has_ended(pod: Json) -> bool:
    """Report whether the pod has ended for good."""
    return member(pod, "status").get("phase") in ENDED


def is_ready(pod: Json) -> bool:
    """Report whether condition Ready is True."""
    conditions = mappings(member(pod, "status").get("conditions"))
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def scheduled(pod: Json, node: str, now: datetime) -> Json:
    """Return the pod bound to the node."""
    return _with_condition(pod | {"spec": pod["spec"] | {"nodeName": node}}, "PodScheduled", now)


def gates_opened(pod: Json, now: datetime) -> Json:
    """Return the pod with all readiness gates True that are not ours."""
    held = {str(one.get("type")) for one in mappings(member(pod, "status").get("conditions"))}
    gates = {str(gate.get("conditionType")) for gate in mappings(pod["spec"].get("readinessGates"))}
    for gate in sorted(gates - held - {IN_PLACE_READY, POD_READY}):
        pod = _with_condition(pod, gate, now)
    return pod


def started(pod: Json, now: datetime, obstacle: Obstacle = lambda _: "") -> Json:
    """Return the pod with all containers running for the first time, except those that cannot be created."""
    found: list[Json] = []
    for one in mappings(pod["spec"].get("containers")):
        why = obstacle(one)
        found.append(waiting(one, why) if why else running(pod, one, {}, now))
    phase = "Running" if any("running" in one["state"] for one in found) else "Pending"
    begun = {"phase": phase, "startTime": rfc3339(now), "containerStatuses": found}
    return observed(pod | {"status": member(pod, "status") | begun}, now)


def stopped(pod: Json, codes: Mapping[str, int], now: datetime) -> Json:
    """Return the pod with these containers stopped with these exit codes, and restarting if the policy says so."""
    told = statuses_of(pod)
    for name, code in codes.items():
        ended = terminated(told[name], now, code)
        told[name] = ended if is_over(pod, ended) else restarting(told[name], now, code)
    return _with_statuses(pod, told, now)


def exited(pod: Json, codes: Mapping[str, int], now: datetime) -> Json:
    """Return the pod with these containers ended by themselves; a restart is not due yet."""
    told = statuses_of(pod)
    ends = {name: terminated(told[name], now, code) for name, code in codes.items()}
    return _with_statuses(pod, told | ends, now)


def restarted(pod: Json, names: Collection[str], now: datetime) -> Json:
    """Return the pod with these containers running by the spec."""
    told = statuses_of(pod)
    specs = {one["name"]: one for one in mappings(pod["spec"].get("containers"))}
    anew = {name: running(pod, specs[name], told[name], now) for name in told if name in names}
    return _with_statuses(pod | {"status": pod["status"] | {"phase": "Running"}}, told | anew, now)


def become_ready(pod: Json, names: Collection[str], now: datetime) -> Json:
    """Return the pod with these containers passing their probes."""
    told = statuses_of(pod)
    passing = {"ready": True, "started": True}
    return _with_statuses(pod, told | {name: told[name] | passing for name in told if name in names}, now)


def ended(pod: Json, now: datetime) -> Json:
    """Return the pod with all containers ended for good, successfully."""
    told = {name: terminated(one, now) for name, one in statuses_of(pod).items()}
    return _with_statuses(pod, told, now, phase="Succeeded" if told else "Failed")


def observed(pod: Json, now: datetime) -> Json:
    """Return the pod with its newest spec observed by the kubelet."""
    return _with_statuses(pod, statuses_of(pod), now)


def _with_statuses(pod: Json, told: Mapping[str, Json], now: datetime, phase: str = "") -> Json:
    specs = {one["name"]: one for one in mappings(pod["spec"].get("containers"))}
    found = [
        one | {"resources": member(specs[name], "resources")} if "resources" in one and name in specs else one
        for name, one in told.items()
    ]
    status: Json = member(pod, "status") | {"containerStatuses": found}
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    pod = pod | {"status": status}
    over = phase or ("" if has_ended(pod) else phase_of(pod, found))
    more = {"phase": over} if over else {}
    return pod | {"status": status | more | {"conditions": conditions_of(pod, now, ending=bool(phase))}}


def _with_condition(pod: Json, condition: str, now: datetime) -> Json:
    """Return the pod with a condition that is true from now on."""
    held = [one for one in mappings(member(pod, "status").get("conditions")) if one.get("type") != condition]
    holds = {"type": condition, "status": "True", "lastTransitionTime": rfc3339(now)}
    return pod | {"status": member(pod, "status") | {"conditions": [*held, holds]}}
