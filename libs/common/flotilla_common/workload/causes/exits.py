"""Containers that ended: what they ended with, and what they said last."""

import signal

from flotilla_common.api.core import Container, ContainerStatus, TerminatedState
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.causes.wording import bare, last_line, restarts_word

BY_SIGNAL = 128
"""What shells and runtimes add to the number of the signal that ended a process."""

_NOT_STARTED = ("StartError", "ContainerCannotRun")


def exit_cause(
    name: str, spec: Container | None, status: ContainerStatus, end: TerminatedState, around: Around
) -> Cause:
    """Why the container ended, and how often it does. `name` says which container: "container app"."""
    if end.reason in _NOT_STARTED:
        return Cause(code="StartError", message=f"{name} cannot be started: {bare(end.message)}")
    detail = ", ".join(filter(None, (_restarts(status), _last_words(status.name, end, around))))
    if end.reason == "OOMKilled":
        limit = spec.resources.limits.get("memory") if spec is not None else None
        told = f"over its memory limit of {limit}" if limit else "the node had no memory left for it"
        return Cause(code="OOMKilled", message=f"{name} is OOMKilled: {told}", detail=detail)
    if end.exit_code == 0 and not end.signal:
        text = f"{name} ends by itself with exit code 0, and is to run on"
        return Cause(code="ContainerCompleted", message=text, detail=detail)
    return Cause(code="CrashLoopBackOff", message=f"{name} crashes with {exit_word(end)}", detail=detail)


def exit_word(end: TerminatedState) -> str:
    """ "exit code 1", "exit code 137 (SIGKILL)"."""
    number = end.signal or end.exit_code - BY_SIGNAL
    try:
        named = f" ({signal.Signals(number).name})" if number > 0 else ""
    except ValueError:
        named = ""
    return f"exit code {end.exit_code}{named}"


def _restarts(status: ContainerStatus) -> str:
    return restarts_word(status.restart_count) if status.restart_count else ""


def _last_words(container: str, end: TerminatedState, around: Around) -> str:
    """What it left in its termination message, else what it logged last."""
    words = last_line(end.message) or last_line(around.last_words.get(container, ""))
    return f'last words: "{words}"' if words else ""
