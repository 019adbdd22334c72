"""Explains to users and scripts what a ContainerRecreateRequest waits for."""

from collections.abc import Iterator
from datetime import datetime

from flotilla_common.api.keys import POD_READY
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    FAILED,
    PENDING,
    RECREATING,
    SUCCEEDED,
    ContainerRecreateRequestStatus,
    ContainerSnapshot,
    RecreateState,
)
from flotilla_common.api.meta import later
from flotilla_common.control.plan import Reason, State
from flotilla_common.workload.causes import Group, PodContext, cause_of
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot
from flotilla_jobs.unreachable_agents import ANSWERS_WITHIN, TO_DO, no_agent

NO_ANSWER = "daemon has not responded for a long time"
"""Message of a request that no agent took up; scripts match it."""


def numbers(status: ContainerRecreateRequestStatus) -> dict[str, int]:
    """Count the containers by state."""
    states = status.container_recreate_states
    return {
        "containers": len(states),
        "killed": sum(state.is_killed for state in states),
        "succeeded": sum(state.phase == SUCCEEDED for state in states),
        "failed": sum(state.phase == FAILED for state in states),
    }


def reasons(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime) -> tuple[Reason, ...]:
    """Return the reasons of the request, given the status that it is about to have."""
    if not snapshot.pod_known:
        pod = snapshot.request.spec.pod_name
        return (Reason(State.PROGRESSING, "ReadingPod", f"asking the apiserver for pod {pod}", (pod,)),)
    if snapshot.request.metadata.deletion_timestamp is not None:
        finalizers = ", ".join(snapshot.request.metadata.finalizers)
        return (
            Reason(
                State.PROGRESSING,
                "Deleting",
                f"is being deleted{f', held by {finalizers}' if finalizers else ''}",
            ),
        )
    if status.phase == COMPLETED:
        return tuple(_finished(snapshot, status, now))
    if not status.phase:
        return (_not_taken_up(snapshot, now),)
    if status.phase == PENDING:
        others = ", ".join(snapshot.ahead) or "another request"
        text = f"{others} to be done first: the agent works on one request of a pod at a time"
        return (Reason(State.WAITING, "WaitingForOtherRequest", text, snapshot.ahead),)
    return (*_under_way(snapshot, status), *_pod_trouble(snapshot, now))


def _finished(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus, now: datetime) -> Iterator[Reason]:
    if status.message:
        hint = f": no node agent answered on node {snapshot.node}; {TO_DO}" if status.message == NO_ANSWER else ""
        yield Reason(State.STUCK, "CompletedAbnormally", f"completed: {status.message}{hint}", symptom=True)
    for state in status.container_recreate_states:
        if state.phase != SUCCEEDED:
            text = f"container {state.name} was not recreated: it is {state.phase}"
            why = "" if state.message == status.message else state.message  # reported above
            yield Reason(State.STUCK, "NotRecreated", f"{text}: {why}" if why else text, symptom=True)
    seconds, since = snapshot.request.spec.ttl_seconds_after_finished, status.completion_time
    if seconds is not None and since is not None and later(since, seconds) > now:
        yield Reason(State.DONE, "WaitingForTtl", f"is deleted {seconds} s after its completion")


def _under_way(snapshot: RecreateSnapshot, status: ContainerRecreateRequestStatus) -> Iterator[Reason]:
    states = status.container_recreate_states
    seconds = snapshot.request.spec.strategy.unready_grace_period_seconds
    if seconds is not None and not any(state.is_killed for state in states):
        yield _grace(snapshot, seconds)
    elif not states:
        yield _agent(snapshot, "reported the states of the containers yet")
    seen = {container.name: container for container in status.container_status_snapshot}
    for state in states:
        if state.phase == PENDING:
            detail = f": {state.message}" if state.message else ""
            yield _container(state, "WaitingForStop", f"container {state.name} has not been stopped yet{detail}")
        elif state.phase == RECREATING:
            yield _recreating(state, seen.get(state.name), snapshot.request.spec.strategy.min_started_seconds)


def _pod_trouble(snapshot: RecreateSnapshot, now: datetime) -> Iterator[Reason]:
    """Yield why the pod does not come back, if a user has to act."""
    pod = snapshot.pod
    cause = cause_of(pod, PodContext(now=now)) if pod is not None else None
    if pod is None or cause is None or not cause.stuck:
        return
    # Not-ready and terminated are expected here; only a delayed restart (CrashLoopBackOff) is a problem.
    put_off = any(
        (waiting := status.state.waiting) and waiting.reason == _PUT_OFF for status in pod.status.container_statuses
    )
    if put_off or cause.code not in _ASKED_FOR:
        yield Group(cause, (pod.metadata.name,)).reason


_PUT_OFF = "CrashLoopBackOff"
_ASKED_FOR = (_PUT_OFF, "ContainerCompleted", "ReadinessGate")


def _recreating(state: RecreateState, new: ContainerSnapshot | None, least: int) -> Reason:
    if new is None:
        text = f"the kubelet has not started container {state.name} again yet"
        return _container(state, "WaitingForStart", text)
    if not new.ready:
        return _container(state, "WaitingForReadiness", f"the new container {state.name} is not ready yet")
    text = f"container {state.name} has not been running for {least} s yet"
    return _container(state, "WaitingForMinStarted", text)


def _container(state: RecreateState, code: str, text: str) -> Reason:
    return Reason(State.WAITING, code, text, (state.name,))


def _not_taken_up(snapshot: RecreateSnapshot, now: datetime) -> Reason:
    """Return the reason that the agent is awaited or missing: it acknowledges a request at once."""
    created = snapshot.request.metadata.creation_timestamp
    if created is None or now < later(created, ANSWERS_WITHIN):
        return _agent(snapshot, "taken the request up yet")
    return no_agent({snapshot.node: created})


def _agent(snapshot: RecreateSnapshot, what: str) -> Reason:
    text = f"the agent of node {snapshot.node} has not {what}"
    return Reason(State.WAITING, "WaitingForNodeAgent", text, (snapshot.node,))


def _grace(snapshot: RecreateSnapshot, seconds: int) -> Reason:
    pod = snapshot.request.spec.pod_name
    text = f"the pod is kept not ready for {seconds} s before its containers are stopped"
    if snapshot.pod is not None and POD_READY not in snapshot.pod.gates:
        text = f"{seconds} s pass before containers are stopped; the pod stays ready: it lacks the gate {POD_READY}"
    return Reason(State.WAITING, "UnreadyGracePeriod", text, (pod,))
