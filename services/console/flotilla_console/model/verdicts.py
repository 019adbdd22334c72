"""The state of a workload: by the reasons of its service, or by its spec and status where there are none."""

from collections.abc import Iterator

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import State as ReasonState
from flotilla_console.model.reading import FINE, Reading, State, Verdict
from flotilla_console.model.reasons import Reasons

_STATES: dict[ReasonState, State] = {
    ReasonState.STUCK: "blocked",
    ReasonState.HELD: "held",
    ReasonState.WAITING: "busy",
    ReasonState.PROGRESSING: "busy",
    ReasonState.DONE: "fine",
    ReasonState.NOTE: "fine",
}


def verdict_of(meta: ObjectMeta, reading: Reading, why: Reasons | None) -> Verdict:
    """Return the state of the workload and its main reason."""
    if meta.deletion_timestamp is not None:
        return Verdict(state="busy", code="Terminating", text="it is being deleted")
    told = _told(why) if why is not None and why.generation >= meta.generation else None
    return told or next(_derived(meta, reading), FINE)


def _told(why: Reasons) -> Verdict | None:
    """Return the service's own most severe reason; None if it gave none."""
    if why.errors:
        failure = why.errors[0]
        return Verdict(state="blocked", code=failure.phase, text=failure.message)
    if not why.reasons:
        return None
    worst = why.by_severity[0]
    return Verdict(state=_STATES[worst.state], code=worst.code, text=worst.message)


def _derived(meta: ObjectMeta, reading: Reading) -> Iterator[Verdict]:
    """Yield what the object waits for, the most important first."""
    if reading.trouble is not None:
        yield reading.trouble
    if reading.finished:
        yield Verdict(state="fine", code="Completed", text="it is complete")
    if reading.observed is not None and reading.observed < meta.generation:
        text = f"generation {meta.generation} has not been observed yet, the last one is {reading.observed}"
        yield Verdict(state="busy", code="NotPlanned", text=text)
    yield from _counts(reading)
    yield from _limits(reading)


def _counts(reading: Reading) -> Iterator[Verdict]:
    numbers, noun = reading.numbers, reading.noun
    if noun == "run" and numbers.total:
        yield Verdict(state="busy", code="Running", text=f"{_of(numbers.total, noun)} active")
    elif noun == "run":
        return
    elif reading.paused and numbers.ready < numbers.desired and numbers.updated is None:
        yield Verdict(state="held", code="PausedByUser", text="paused by the user")
    elif numbers.total < numbers.desired:
        text = f"{_of(numbers.desired - numbers.total, noun)} to come: {numbers.total} of {numbers.desired} exist"
        yield Verdict(state="busy", code="ScalingUp", text=text)
    elif numbers.ready < numbers.desired:
        missing = _of(numbers.desired - numbers.ready, noun)
        text = f"{missing} to become ready" if numbers.updated is not None else f"{missing} still to be done"
        yield Verdict(state="busy", code="WaitingForAvailability", text=text)
    elif numbers.updated is not None and numbers.total > numbers.desired:
        text = f"{_of(numbers.total - numbers.desired, noun)} to be deleted: {numbers.total} exist"
        yield Verdict(state="busy", code="ScalingDown", text=text)


def _limits(reading: Reading) -> Iterator[Verdict]:
    numbers = reading.numbers
    if numbers.updated is None:
        return
    old, todo = numbers.total - numbers.updated, numbers.expected - numbers.updated
    if old <= 0:
        return
    if reading.paused:
        yield Verdict(state="held", code="PausedByUser", text="paused by the user: unpause the update to continue")
    elif reading.on_delete:
        text = f"{_of(old, reading.noun)} of older revisions to be deleted by the user ({reading.strategy})"
        yield Verdict(state="held", code="OnDelete", text=text)
    elif todo > 0:
        yield Verdict(state="busy", code="Updating", text=f"{_of(todo, reading.noun)} to be updated")
    elif reading.partition:
        text = f"partition {reading.partition} keeps {_of(old, reading.noun)} at older revisions"
        yield Verdict(state="held", code="PartitionReached", text=text)


def _of(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else f'{noun}s'}"
