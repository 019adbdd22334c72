"""Models scheduler and kubelet: transitions of a pod, as pure functions of documents.

The status says what runs. The caller decides when a transition is due and whether it succeeds.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.keys import IN_PLACE_READY, POD_READY
from flotilla_common.api.meta import rfc3339
from flotilla_common.model import containers
from flotilla_common.model.containers import ENDED, statuses_of

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
    return _told(pod | {"spec": pod["spec"] | {"nodeName": node}}, "PodScheduled", now)


def gates_opened(pod: Json, now: datetime) -> Json:
    """Return the pod with all readiness gates True that are not ours."""
    held = {str(one.get("type")) for one in mappings(member(pod, "status").get("conditions"))}
    gates = {str(gate.get("conditionType")) for gate in mappings(pod["spec"].get("readinessGates"))}
    for gate in sorted(gates - held - {IN_PLACE_READY, POD_READY}):
        pod = _told(pod, gate, now)
    return pod


def started(pod: Json, now: datetime, obstacle: Obstacle = lambda _: "") -> Json:
    """Return the pod with all containers running for the first time, except those that cannot be created."""
    found: list[Json] = []
    for one in mappings(pod["spec"].get("containers")):
        why = obstacle(one)
        found.append(containers.waiting(one, why) if why else containers.running(pod, one, {}, now))
    phase = "Running" if any("running" in one["state"] for one in found) else "Pending"
    begun = {"phase": phase, "startTime": rfc3339(now), "containerStatuses": found}
    return observed(pod | {"status": member(pod, "status") | begun}, now)


def stopped(pod: Json, codes: Mapping[str, int], now: datetime) -> Json:
    """Return the pod with these containers stopped with these exit codes, and restarting if the policy says so."""
    told = statuses_of(pod)
    for name, code in codes.items():
        ended = containers.terminated(told[name], now, code)
        told[name] = ended if containers.is_over(pod, ended) else containers.restarting(told[name], now, code)
    return _with_statuses(pod, told, now)


def exited(pod: Json, codes: Mapping[str, int], now: datetime) -> Json:
    """Return the pod with these containers ended by themselves; a restart is not due yet."""
    told = statuses_of(pod)
    ends = {name: containers.terminated(told[name], now, code) for name, code in codes.items()}
    return _with_statuses(pod, told | ends, now)


def restarted(pod: Json, names: Collection[str], now: datetime) -> Json:
    """Return the pod with these containers running by the spec."""
    told = statuses_of(pod)
    specs = {one["name"]: one for one in mappings(pod["spec"].get("containers"))}
    anew = {name: containers.running(pod, specs[name], told[name], now) for name in told if name in names}
    return _with_statuses(pod | {"status": pod["status"] | {"phase": "Running"}}, told | anew, now)


def become_ready(pod: Json, names: Collection[str], now: datetime) -> Json:
    """Return the pod with these containers passing their probes."""
    told = statuses_of(pod)
    passing = {"ready": True, "started": True}
    return _with_statuses(pod, told | {name: told[name] | passing for name in told if name in names}, now)


def ended(pod: Json, now: datetime) -> Json:
    """Return the pod with all containers ended for good, successfully."""
    told = {name: containers.terminated(one, now) for name, one in statuses_of(pod).items()}
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
    over = phase or ("" if has_ended(pod) else containers.phase_of(pod, found))
    more = {"phase": over} if over else {}
    return pod | {"status": status | more | {"conditions": containers.conditions_of(pod, now, ending=bool(phase))}}


def _told(pod: Json, condition: str, now: datetime) -> Json:
    """Return the pod with a condition that is true from now on."""
    held = [one for one in mappings(member(pod, "status").get("conditions")) if one.get("type") != condition]
    holds = {"type": condition, "status": "True", "lastTransitionTime": rfc3339(now)}
    return pod | {"status": member(pod, "status") | {"conditions": [*held, holds]}}
