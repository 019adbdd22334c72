"""Causes in containers: not created, not started, crashing, or not ready, with exit codes and last log lines."""

import signal
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from flotilla_common.api.core import Container, ContainerStatus, Pod, TerminatedState, WaitingState
from flotilla_common.api.meta import rfc3339
from flotilla_common.workload.causes.cause import Cause, PodContext, bare, last_line, restarts_word
from flotilla_common.workload.causes.readiness import probe_cause, probe_result, restart_cause, update_of
from flotilla_common.workload.causes.starting import IMAGE_REASONS, ON_ITS_WAY, image_cause, waits_for_turn

BY_SIGNAL = 128
"""The offset that shells and runtimes add to the number of the signal that ended a process."""

_NOT_STARTED = ("StartError", "ContainerCannotRun")

RECENT = timedelta(minutes=10)
"""A container that has run for this long since its restart has recovered: kubelets reset their backoff then."""

_WHAT_FAILED = {
    "CreateContainerConfigError": "cannot be made",
    "CreateContainerError": "cannot be made",
    "RunContainerError": "cannot be started",
    "PostStartHookError": "is stopped, its postStart hook failed",
}


def containers_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return the first container's cause that a person has to act on, or else the first that is in progress."""
    return min(_looks(pod, around), key=lambda cause: not cause.stuck, default=None)


def _looks(pod: Pod, around: PodContext) -> Iterator[Cause]:
    specs = {one.name: one for one in (*pod.spec.init_containers, *pod.spec.containers)}
    for status in pod.status.init_container_statuses:
        spec = specs.get(status.name)
        look = _Look(pod, spec, status, around)
        cause = look.sidecar() if spec is not None and spec.restart_policy == "Always" else look.init()
        if cause is not None:
            yield cause
    for status in pod.status.container_statuses:
        cause = _Look(pod, specs.get(status.name), status, around).container()
        if cause is not None:
            yield cause


class _Look:
    """The examination of one container."""

    def __init__(self, pod: Pod, spec: Container | None, status: ContainerStatus, around: PodContext) -> None:
        self._pod = pod
        self._spec = spec
        self._status = status
        self._around = around
        self._name = f"container {status.name}"

    def container(self) -> Cause | None:
        state = self._status.state
        if state.waiting is not None:
            return self._waiting(state.waiting)
        if state.terminated is not None:
            return self._ended(state.terminated)
        return None if self._status.ready or state.running is None else self._unready()

    def sidecar(self) -> Cause | None:
        """Return the cause in a sidecar, an init container that keeps running."""
        self._name = f"sidecar {self._status.name}"
        return self.container()

    def init(self) -> Cause | None:
        """Return the cause in an init container: all later containers wait for its end."""
        self._name = f"init container {self._status.name}"
        state = self._status.state
        if state.terminated is not None:
            return None if state.terminated.exit_code == 0 else self._ended(state.terminated)
        if state.waiting is not None:
            return self._waiting(state.waiting)
        if state.running is None:
            return None
        if (end := self._status.last_state.terminated) is not None and (cause := self._ended(end)) is not None:
            return cause
        text = f"{self._name} runs, and has to end before the others start"
        return Cause(code="InitContainerRunning", message=text, stuck=False, since=state.running.started_at)

    def _waiting(self, waiting: WaitingState) -> Cause | None:
        reason, name = waiting.reason, self._status.name
        if reason in IMAGE_REASONS:
            return image_cause(name, self._spec.image if self._spec else "", waiting, self._around)
        end = self._status.last_state.terminated
        if reason == "CrashLoopBackOff" and end is not None:
            return self._cause_of_end(end)
        if reason in ON_ITS_WAY:
            return self._ended(end) if end is not None else None
        if reason == "CreateContainerConfigError" and waits_for_turn(self._pod, name):
            text = f"{self._name} waits for its turn: containers with a higher launch priority have to be ready first"
            return Cause(code="LaunchPriority", message=text, stuck=False)
        if reason == "RunContainerError":
            reason = "StartError"  # the reason once the container counts as terminated
        told = bare(waiting.message)
        failed = _WHAT_FAILED.get(waiting.reason, f"waits, {waiting.reason}")
        return Cause(code=reason, message=f"{self._name} {failed}{f': {told}' if told else ''}")

    def _ended(self, end: TerminatedState) -> Cause | None:
        """Return the cause of a container's end; None if an in-place update ended it."""
        return None if self._by_update(end) else self._cause_of_end(end)

    def _cause_of_end(self, end: TerminatedState) -> Cause:
        """Return why a container ended: its kubelet stopped it because a probe failed, or it exited by itself."""
        restarted = restart_cause(self._name, self._status, end, self._around)
        return restarted or exit_cause(self._name, self._spec, self._status, end, self._around)

    def _by_update(self, end: TerminatedState) -> bool:
        """Return whether the container was started before the pod's last in-place update.

        Both times have whole seconds. A container that was started within the second of the update counts as older: if
        it crashes for another reason, its next start shows that.
        """
        update = update_of(self._pod)
        return update is not None and end.started_at is not None and end.started_at <= update.update_timestamp

    def _unready(self) -> Cause | None:
        """Return why a running container is not ready; after a recent restart, with its exit as the cause."""
        unready = probe_cause(self._name, self._spec, self._status, self._around)
        end = self._status.last_state.terminated
        if end is None or not self.restarted_lately() or (ended := self._ended(end)) is None:
            return unready
        running = self._status.state.running
        since = f"runs again since {rfc3339(running.started_at)}" if running and running.started_at else "runs again"
        told = probe_result("Readiness", self._status.name, self._around, running.started_at if running else None)
        now = f"{since}, readiness probe: {told}" if told else since
        return msgspec.structs.replace(ended, detail=", ".join(filter(None, (ended.detail, now))))

    def restarted_lately(self) -> bool:
        """Report whether the container was restarted recently."""
        running, now = self._status.state.running, self._around.now
        if not self._status.restart_count or running is None:
            return False
        return now is None or running.started_at is None or now - running.started_at < RECENT

    def unstable(self) -> Cause | None:
        """Return why a ready container may fail soon: it was restarted recently, or its liveness probe fails."""
        end = self._status.last_state.terminated
        if end is not None and self.restarted_lately() and (cause := self._ended(end)) is not None:
            return cause
        lately = self._around.now - timedelta(minutes=1) if self._around.now is not None else None
        told = probe_result("Liveness", self._status.name, self._around, lately)
        if not told:
            return None
        text = f"{self._name} fails its liveness probe, and will be restarted: {told}"
        return Cause(code="LivenessProbeFailed", message=text)


def unstable_cause(pod: Pod, around: PodContext) -> Cause | None:
    """Return why a pod that serves may fail soon; None if no problem is known."""
    specs = {one.name: one for one in pod.spec.containers}
    for status in pod.status.container_statuses:
        cause = _Look(pod, specs.get(status.name), status, around).unstable()
        if cause is not None:
            return cause
    return None


def exit_cause(
    name: str, spec: Container | None, status: ContainerStatus, end: TerminatedState, around: PodContext
) -> Cause:
    """Return why the container ended, and how often; `name` identifies it: "container app"."""
    if end.reason in _NOT_STARTED:
        return Cause(code="StartError", message=f"{name} cannot be started: {bare(end.message)}")
    detail = ", ".join(filter(None, (_restarts(status), _last_words(status.name, end, around))))
    if end.reason == "OOMKilled":
        limit = spec.resources.limits.get("memory") if spec is not None else None
        told = f"over its memory limit of {limit}" if limit else "the node had no memory left for it"
        return Cause(code="OOMKilled", message=f"{name} is OOMKilled: {told}", detail=detail)
    if end.exit_code == 0 and not end.signal:
        text = f"{name} ends by itself with exit code 0, but should keep running"
        return Cause(code="ContainerCompleted", message=text, detail=detail)
    return Cause(code="CrashLoopBackOff", message=f"{name} crashes with {exit_word(end)}", detail=detail)


def exit_word(end: TerminatedState) -> str:
    """Return "exit code 1", "exit code 137 (SIGKILL)"."""
    number = end.signal or end.exit_code - BY_SIGNAL
    try:
        named = f" ({signal.Signals(number).name})" if number > 0 else ""
    except ValueError:
        named = ""
    return f"exit code {end.exit_code}{named}"


def _restarts(status: ContainerStatus) -> str:
    return restarts_word(status.restart_count) if status.restart_count else ""


def _last_words(container: str, end: TerminatedState, around: PodContext) -> str:
    """Return the container's termination message, or else its last log line."""
    words = last_line(end.message) or last_line(around.last_words.get(container, ""))
    return f'last words: "{words}"' if words else ""
