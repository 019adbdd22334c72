"""The life of one probe's result: containers that come and end, outcomes in a row, refreshes (nodeagent.md §6.2).

All functions are pure: from a `Progress` and what happened, they return the next `Progress`.
"""

from datetime import datetime

import msgspec

from flotilla_common.api.kinds.nodepodprobe.types import FAILED, MESSAGE_BYTES, SUCCEEDED, UNKNOWN
from flotilla_nodeagent.cri.types import Container, State
from flotilla_nodeagent.probes.definitions import Probe

_UNPRINTABLE = dict.fromkeys({*range(32), 127} - {9, 10, 13}, "\ufffd")
"""Control characters: they would take six bytes each in a report."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The report about a probe. Times are whole seconds."""

    state: str
    message: str = ""
    probed: datetime
    since: datetime  # when it got this state


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one probe."""

    container_id: str = ""  # the container of the result; empty: not known
    result: Result | None = None
    outcome: str = ""  # of the last round
    in_a_row: int = 0  # rounds with this outcome


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one round."""

    succeeded: bool
    message: str = ""

    @property
    def state(self) -> str:
        """Return Succeeded or Failed."""
        return SUCCEEDED if self.succeeded else FAILED


def placed(progress: Progress, container: Container, started: float) -> Progress:
    """Return the progress with its result attributed to this container.

    An earlier process reported it for an unknown container; it counts only if the probe was later than this one's start
    (seconds since the epoch).
    """
    if progress.container_id or progress.result is None or not started:
        return progress
    if progress.result.probed.timestamp() < started:
        return progress
    return msgspec.structs.replace(progress, container_id=container.id)


def seen(progress: Progress, container: Container, now: datetime, *, refresh: bool = False) -> Progress:
    """Return the progress given the probe's newest container.

    Another container than before makes the result Unknown, one that does not run makes it Failed.
    """
    if progress.container_id != container.id:
        progress = Progress(container_id=container.id, result=_next(progress.result, UNKNOWN, "", now, refresh=True))
    if container.state is not State.RUNNING:
        message = f"Container({container.name}) is Non-running"
        return _with_result(progress, FAILED, message, now, refresh=refresh)
    return progress


def redefined(progress: Progress, now: datetime) -> Progress:
    """Return the progress after the handler has changed: earlier results are not about the new one."""
    if progress.result is None:
        return msgspec.structs.replace(progress, outcome="", in_a_row=0)
    result = _next(progress.result, UNKNOWN, "", now, refresh=True)
    return msgspec.structs.replace(progress, result=result, outcome="", in_a_row=0)


def refused(progress: Progress, why: str, now: datetime, *, refresh: bool = False) -> Progress:
    """Return the progress of a probe that the agent does not run."""
    return _with_result(progress, FAILED, cut(f"refused: {why}"), now, refresh=refresh)


def probed(progress: Progress, probe: Probe, outcome: Outcome, now: datetime, *, refresh: bool = False) -> Progress:
    """Return the progress after a round with this outcome. Only enough equal outcomes in a row become the result."""
    in_a_row = progress.in_a_row + 1 if progress.outcome == outcome.state else 1
    needed = probe.successes if outcome.succeeded else probe.failures
    counted = msgspec.structs.replace(progress, outcome=outcome.state, in_a_row=min(in_a_row, needed))
    if in_a_row < needed:
        return counted
    return _with_result(counted, outcome.state, cut(outcome.message), now, refresh=refresh)


def cut(message: str, most: int = MESSAGE_BYTES) -> str:
    """Return at most `most` bytes of the message, without control characters."""
    return message.translate(_UNPRINTABLE).encode(errors="replace")[:most].decode(errors="ignore")


def _with_result(progress: Progress, state: str, message: str, now: datetime, *, refresh: bool) -> Progress:
    result = _next(progress.result, state, message, now, refresh=refresh)
    return progress if result is progress.result else msgspec.structs.replace(progress, result=result)


def _next(result: Result | None, state: str, message: str, now: datetime, *, refresh: bool) -> Result:
    """Return the result to store: the old one if it is equal and needs no newer time."""
    at = now.replace(microsecond=0)
    if result is None or result.state != state:
        return Result(state=state, message=message, probed=at, since=at)
    if result.message != message or refresh:
        return msgspec.structs.replace(result, message=message, probed=at)
    return result
