"""What a kubelet reports about a pod: container statuses and conditions, as pure functions of what runs."""

import hashlib
from collections.abc import Iterable

from flotilla_common.api.documents import mappings, member
from flotilla_common.control.plan import Json

OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
"""The conditions that the kubelet writes; all others are somebody else's."""


def statuses(pod: Json) -> dict[str, Json]:
    """The reported container statuses by name."""
    return {str(one["name"]): one for one in mappings(member(pod, "status").get("containerStatuses"))}


def running(pod: Json, container: Json, restarts: int, now: str) -> Json:
    """A container that has just been started."""
    name, image = str(container["name"]), str(container["image"])
    return {
        "name": name,
        "image": image,
        "imageID": f"registry.test/{image.partition(':')[0]}@sha256:{_digest(image)}",
        "containerID": f"containerd://{_digest(pod['metadata']['uid'], name, str(restarts))}",
        "ready": True,
        "started": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": now}},
        "lastState": {},
    }


def waiting(container: Json, reason: str) -> Json:
    """A container that has never run."""
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
    }


def stopped(status: Json, now: str, reason: str, *, for_good: bool = False, code: int = 0) -> Json:
    """A container that ran until now. The image is still that of the run that ended."""
    end = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now}}
    if for_good:
        return status | {"ready": False, "started": False, "state": end}
    return status | {"ready": False, "started": False, "state": {"waiting": {"reason": reason}}, "lastState": end}


def conditions(pod: Json, containers: Iterable[Json], now: str, *, ending: bool = False) -> list[Json]:
    """The kubelet's conditions that are not stored so already."""
    ready = all(one["ready"] for one in containers) and not ending
    stored = {str(one["type"]): one for one in mappings(member(pod, "status").get("conditions"))}
    gates = [str(gate["conditionType"]) for gate in mappings(pod["spec"].get("readinessGates"))]
    open_gates = all(stored.get(gate, {}).get("status") == "True" for gate in gates)
    reason = "" if ready and open_gates else "ReadinessGatesNotReady" if ready else "ContainersNotReady"
    wanted = {
        "PodReadyToStartContainers": (not ending, ""),
        "Initialized": (True, ""),
        "ContainersReady": (ready, "" if ready else "ContainersNotReady"),
        "Ready": (ready and open_gates, reason),
    }
    changes: list[Json] = []
    for kind, (status, why) in wanted.items():
        old, told = stored.get(kind, {}), "True" if status else "False"
        if old.get("status") != told or old.get("reason", "") != why:
            since = old["lastTransitionTime"] if old.get("status") == told else now
            own = {
                "reason": why or None,
                "message": None,  # may be another writer's, about an earlier state
                "lastTransitionTime": since,
            }
            changes.append({"type": kind, "status": told, **own})
    return changes


def is_over(pod: Json, status: Json) -> bool:
    """The container has ended and is not started again."""
    end = member(status, "state", "terminated")
    policy = pod["spec"].get("restartPolicy", "Always")
    return bool(end) and (policy == "Never" or (policy == "OnFailure" and not end["exitCode"]))


def phase(pod: Json, found: Iterable[Json]) -> str:
    """The phase of a pod whose containers are all over; empty while one is not."""
    statuses = list(found)
    if not all(is_over(pod, one) for one in statuses):
        return ""
    return "Failed" if any(one["state"]["terminated"]["exitCode"] for one in statuses) else "Succeeded"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
