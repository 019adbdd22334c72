"""The chart's own pods, in Kubernetes' words: what they wait for, what crashes, what cannot be made."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from flotilla_cli.ages import span
from flotilla_cli.doctor.facts import Facts
from flotilla_cli.doctor.finding import Finding
from flotilla_cli.install.kinds import name_of, namespace_of
from flotilla_common.api.documents import Json, mappings, member, text

SLOW = timedelta(seconds=60)
"""How long a pod may take to become ready; it takes half a minute once its image is there."""

_BEGINNING = frozenset({"ContainerCreating", "PodInitializing"})
"""Every container waits so at first."""

_LOOK = "`kubectl describe` and `kubectl logs --previous` of it say more"


def seen(facts: Facts) -> str:
    """What was looked at."""
    return f"{len(facts.pods.get())} pods of the chart"


def check(facts: Facts) -> Iterator[Finding]:
    """Each pod, and each workload that makes none."""
    for pod in facts.pods.get():
        stays = namespace_of(pod) == facts.namespace and "deletionTimestamp" not in member(pod, "metadata")
        if stays and (why := trouble(pod, facts.now)):
            yield Finding(code="PodNotReady", about=f"pod {name_of(pod)}", text=why, advice=_LOOK)
    for workload in facts.workloads.get():
        if namespace_of(workload) == facts.namespace and name_of(workload).startswith("flotilla-"):
            yield from _workload(workload)


def trouble(pod: Json, now: datetime) -> str:
    """Why the pod does not work; empty if it does, or if it has only just begun."""
    status = member(pod, "status")
    if status.get("phase") == "Succeeded":
        return ""
    for condition in mappings(status.get("conditions")):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{text(condition.get('reason'))}: {text(condition.get('message'))}"
    containers = [*mappings(status.get("initContainerStatuses")), *mappings(status.get("containerStatuses"))]
    for container in containers:
        if why := _waiting(container):
            return f"container {text(container.get('name'))}: {why}"
    return _slow(pod, now)


def _waiting(container: Json) -> str:
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
    nothing: Json = {}
    ready = next((one for one in conditions if one.get("type") == "Ready"), nothing)
    since = text(ready.get("lastTransitionTime")) or text(member(pod, "metadata").get("creationTimestamp"))
    if ready.get("status") == "True" or not since:
        return ""
    age = now - datetime.fromisoformat(since)
    return f"not ready for {span(age.total_seconds())}: {text(ready.get('message'))}" if age > SLOW else ""


def _workload(workload: Json) -> Iterator[Finding]:
    about = f"{text(workload.get('kind'))} {name_of(workload)}"
    for condition in mappings(member(workload, "status").get("conditions")):
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            said = f"its pods cannot be made: {text(condition.get('message'))}"
            yield Finding(code="PodsRefused", about=about, text=said, advice="raise the quota, or see who refuses them")
    if member(workload, "spec").get("replicas", 1) == 0:
        said = "it was scaled to 0: nobody does its work"
        yield Finding(
            code="ScaledToZero", about=about, text=said, advice=f"`kubectl scale --replicas 1 {about.lower()}`"
        )
