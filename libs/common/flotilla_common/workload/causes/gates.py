"""Readiness gates, and the time that a ready pod has to prove itself."""

from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import IN_PLACE_READY, POD_READY
from flotilla_common.api.meta import Condition, rfc3339
from flotilla_common.api.moments import later
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.causes.wording import bare
from flotilla_common.workload.readiness import Holder

_OURS = {
    IN_PLACE_READY: "the service of its workload sets it",
    POD_READY: "the service of its workload, or else the sidecar service, sets it",
}


def gate_cause(pod: Pod) -> Cause | None:
    """The first readiness gate that is not open, where all containers are ready. An update closes its own for a while
    only, and whoever holds KruisePodReady may never let go."""
    containers = pod.conditions.get("ContainersReady")
    if pod.ready or containers is None or containers.status != "True":
        return None
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        condition = pod.conditions.get(name)
        if condition is None:
            who = _OURS.get(name, "whoever is to set this condition on the pod has not")
            text = f"readiness gate {name} is not set: {who}"
            return Cause(code="ReadinessGate", message=text, stuck=name not in _OURS)
        if condition.status != "True":
            text = f"readiness gate {name} is {condition.status}{_why(condition)}"
            return Cause(code="ReadinessGate", message=text, stuck=name != IN_PLACE_READY)
    return None


def _why(condition: Condition) -> str:
    if condition.type == POD_READY:
        return f", held by {_holders(condition.message)}"
    told = ": ".join(filter(None, (condition.reason, bare(condition.message))))
    return f": {told}" if told else ""


def _holders(message: str) -> str:
    try:
        holders = read_json(message, list[Holder])
    except ValueError:
        return bare(message) or "nobody"
    return ", ".join(f"{one.user_agent} ({one.key})" for one in holders) or "nobody"


def ready_soon_cause(pod: Pod, around: Around) -> Cause | None:
    """Ready, but not for minReadySeconds yet."""
    since, least = pod.ready_since, around.min_ready_seconds
    if since is None or not least:
        return None
    until = later(since, least)
    if around.now is None or around.now >= until:
        return None
    text = f"ready, and available after minReadySeconds {least}"
    return Cause(code="MinReadySeconds", message=text, detail=f"at {rfc3339(until)}", stuck=False)


def unready_cause(pod: Pod) -> Cause | None:
    """Not ready, and nothing tells why but the condition itself."""
    ready = pod.conditions.get("Ready")
    if pod.ready or pod.status.phase == "Succeeded":
        return None
    told = ": ".join(filter(None, (ready.reason, bare(ready.message)))) if ready is not None else ""
    return Cause(code="NotReady", message=f"it is not Ready{f': {told}' if told else ''}", stuck=False)
