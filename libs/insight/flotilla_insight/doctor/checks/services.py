"""Checks the services (present, alive, ready) and the chart's pods.

Pods are reported in Kubernetes' words: what they wait for, what crashes, what cannot be created.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.bus.heartbeat import NODE_AGENT
from flotilla_insight.doctor.expected import services
from flotilla_insight.doctor.facts import Facts, ReplicaHeartbeat
from flotilla_insight.doctor.finding import Finding, Looked, broken
from flotilla_insight.doctor.gather.bus import PATIENCE_SECONDS
from flotilla_insight.durations import span
from flotilla_insight.installation.objects import name_of, namespace_of

_START = "start it (`flotilla up`, `flotilla run`, its Deployment), and see its log: it may be on another bus"

SLOW = timedelta(seconds=60)
"""How long a pod may take to become ready; usually half a minute once its image is there."""

_BEGINNING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons for which every container waits at first."""

_LOOK = "see `kubectl describe` and `kubectl logs --previous`"


def check_services(facts: Facts) -> Looked:
    """Check each process of a local set, each expected service, and each replica with heartbeats."""
    yield from _processes(facts)
    heard = [one for one in facts.heartbeats.get() if one.beat.service != NODE_AGENT]
    logs = {line.name: line.log for line in facts.processes if not line.running}
    speaking = {one.beat.service for one in heard}
    for one in heard:
        yield from _waiting(one)
    for service, because in services(facts).items():
        if service not in speaking:
            yield _silent(service, because, logs)
    return f"{len(speaking)} services with {len(heard)} replicas"


def _silent(service: str, because: str, logs: Mapping[str, str]) -> Finding:
    said = f"no heartbeat for {PATIENCE_SECONDS:.0f} s; expected because {because}"
    advice = _START
    if service in logs:
        advice = f"it is not running: `flotilla up` starts it again; its log is {logs[service]}"
    elif "lease" in because:
        advice += "; if it was removed on purpose, delete its leases"
    return broken("ServiceSilent", service, said, advice)


def _waiting(one: ReplicaHeartbeat) -> Iterator[Finding]:
    if one.beat.waiting:
        said = "; ".join(f"{part}: {why}" for part, why in sorted(one.beat.waiting.items()))
        advice = "see its log, and docs/operations.md#troubleshooting for common causes"
        about = one.who
        yield broken("ServiceWaits", about, f"it is not ready: {said}", advice)


def _processes(facts: Facts) -> Iterator[Finding]:
    """Report processes of the local set.

    The bus has its own check, and so have services while there is a bus with their heartbeats.
    """
    heard = facts.heartbeats.found is not None
    for line in facts.processes:
        service = line.name in facts.local
        wrong = not heard and not line.running if service else line.name != "nats-server" and not line.healthy
        if wrong:
            advice = "`flotilla up` starts it again" + (f"; its log is {line.log}" if line.log else "")
            yield broken("ProcessDown", f"process {line.name}", line.detail, advice)


def check_pods(facts: Facts) -> Looked:
    """Check each pod, and each workload that cannot create its pods."""
    for pod in facts.pods.get():
        stays = namespace_of(pod) == facts.namespace and "deletionTimestamp" not in member(pod, "metadata")
        if stays and (why := trouble(pod, facts.now)):
            yield broken("PodNotReady", f"pod {name_of(pod)}", why, _LOOK)
    for workload in facts.workloads.get():
        if namespace_of(workload) == facts.namespace and name_of(workload).startswith("flotilla-"):
            yield from _workload(workload)
    return f"{len(facts.pods.get())} pods of the chart"


def trouble(pod: Json, now: datetime) -> str:
    """Return why the pod does not work; empty if it does, or was just created."""
    status = member(pod, "status")
    if status.get("phase") == "Succeeded":
        return ""
    for condition in mappings(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{text(condition.get('reason'))}: {text(condition.get('message'))}"
    containers = [*mappings(status.get("initContainerStatuses")), *mappings(status.get("containerStatuses"))]
    for container in containers:
        if why := _why_waiting(container):
            return f"container {text(container.get('name'))}: {why}"
    return _slow(pod, now)


def _why_waiting(container: Json) -> str:
    waiting = member(container, "state", "waiting")
    reason = text(waiting.get("reason"))
    if not reason or reason in _BEGINNING:
        return ""
    ended: Json = member(container, "lastState", "terminated")
    code = f", exit code {ended['exitCode']}" if "exitCode" in ended else ""
    count = container.get("restartCount", 0)
    restarts = f", {count} restarts" if count else ""
    return f"{reason}: {text(waiting.get('message'))}{code}{restarts}"


def _slow(pod: Json, now: datetime) -> str:
    conditions = mappings(member(pod, "status").get("conditions"))
    ready = next((one for one in conditions if one.get("type") == "Ready"), Json())
    since = text(ready.get("lastTransitionTime")) or text(member(pod, "metadata").get("creationTimestamp"))
    if ready.get("status") == "True" or not since:
        return ""
    age = now - datetime.fromisoformat(since)
    return f"not ready for {span(age.total_seconds())}: {text(ready.get('message'))}" if age > SLOW else ""


def _workload(workload: Json) -> Iterator[Finding]:
    about = f"{text(workload.get('kind'))} {name_of(workload)}"
    for condition in mappings(member(workload, "status").get("conditions")):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            said = f"its pods cannot be created: {text(condition.get('message'))}"
            yield broken("PodsRefused", about, said, "raise the quota, or find out what rejects them")
    if member(workload, "spec").get("replicas", 1) == 0:
        said = "it is scaled to 0, so its work is not done"
        yield broken("ScaledToZero", about, said, f"`kubectl scale --replicas 1 {about.lower()}`")
