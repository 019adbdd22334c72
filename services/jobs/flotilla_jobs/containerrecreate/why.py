"""What a ContainerRecreateRequest waits for, for people and scripts."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from flotilla_common.api.containerrecreaterequest import (
    COMPLETED,
    FAILED,
    PENDING,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequestStatus,
    RecreateState,
)
from flotilla_common.control.plan import Reason
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot


def numbers(status: ContainerRecreateRequestStatus) -> dict[str, int]:
    """How many containers are how far."""
    states = status.container_recreate_states
    return {
        "containers": len(states),
        "killed": sum(state.is_killed for state in states),
        "succeeded": sum(state.phase == SUCCEEDED for state in states),
        "failed": sum(state.phase == FAILED for state in states),
    }


def reasons(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime) -> tuple[Reason, ...]:
    """Why the request stands where it will stand with this status."""
    if not snapshot.pod_known:
        pod = snapshot.request.spec.pod_name
        return (Reason(code="ReadingPod", message=f"asking the apiserver for pod {pod}", objects=(pod,)),)
    if status.phase == COMPLETED:
        return tuple(_finished(snapshot, status, now))
    if not status.phase:
        text = f"waiting for the agent of node {snapshot.node} to take the request up"
        return (Reason(code="WaitingForNodeAgent", message=text, objects=(snapshot.node,)),)
    if status.phase == PENDING:
        others = ", ".join(snapshot.ahead) or "another request"
        text = f"waiting for {others}: the agent works on one request of a pod at a time"
        return (Reason(code="WaitingForOtherRequest", message=text, objects=snapshot.ahead),)
    return tuple(_under_way(snapshot, status))


def _finished(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime) -> Iterator[Reason]:
    if status.message:
        yield Reason(code="CompletedAbnormally", message=f"completed: {status.message}")
    for state in status.container_recreate_states:
        if state.phase != SUCCEEDED:
            text = f"container {state.name} was not recreated: it is {state.phase}"
            yield Reason(code="NotRecreated", message=f"{text}: {state.message}" if state.message else text)
    seconds, since = snapshot.request.spec.ttl_seconds_after_finished, status.completion_time
    if seconds is not None and since is not None and since + timedelta(seconds=seconds) > now:
        yield Reason(code="WaitingForTtl", message=f"is deleted {seconds} s after its completion")


def _under_way(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus) -> Iterator[Reason]:
    strategy = snapshot.request.spec.strategy
    untouched = not any(state.is_killed for state in status.container_recreate_states)
    if strategy.unready_grace_period_seconds is not None and untouched:
        seconds = strategy.unready_grace_period_seconds
        text = f"the pod is kept not ready for {seconds} s before its containers are stopped"
        yield Reason(code="UnreadyGracePeriod", message=text, objects=(snapshot.request.spec.pod_name,))
    seen = {container.name: container for container in status.container_status_snapshot}
    for state in status.container_recreate_states:
        if state.phase == PENDING:
            yield _pending(state)
        elif state.phase == RECREATING:
            container = seen.get(state.name)
            if container is None:
                text = f"waiting for the kubelet to start container {state.name} again"
                yield Reason(code="WaitingForStart", message=text, objects=(state.name,))
            elif not container.ready:
                text = f"waiting for the new container {state.name} to be ready"
                yield Reason(code="WaitingForReadiness", message=text, objects=(state.name,))
            else:
                text = f"waiting until container {state.name} has been running for {strategy.min_started_seconds} s"
                yield Reason(code="WaitingForMinStarted", message=text, objects=(state.name,))


def _pending(state: RecreateState) -> Reason:
    detail = f": {state.message}" if state.message else ""
    text = f"container {state.name} has not been stopped yet{detail}"
    return Reason(code="WaitingForStop", message=text, objects=(state.name,))
