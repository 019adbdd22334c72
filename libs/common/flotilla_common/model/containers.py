"""The statuses that a kubelet reports for containers and pods, as pure functions of what runs."""

import hashlib
from collections.abc import Iterable
from datetime import datetime

from flotilla_common.api.documents import Json, mappings, member
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
