"""Combines single writes into operations: an update of a pod takes three writes, and people count pods.

Writes on one object with one intent and revision are one operation. It ends when the pod is ready again: an in-place
update with the refresh that makes the pod ready, a creation when the pod is Ready. Operations that one pass began are a
wave; if there are many waves, the closest ones are merged.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import UPDATES_IN_PLACE, Intent
from flotilla_common.control.text import named
from flotilla_insight.history.generations import Pod
from flotilla_insight.published import Act

WAVES = 8
"""Limit of waves for one kind of work, so that a rollout fits on one screen."""

Work = tuple[str, str, str]
"""Kind of the objects, intent, revision: operations are grouped by it."""


class Operation(msgspec.Struct, kw_only=True):
    """An operation on one object. `ended` is None while it is not done, if that can be known."""

    begin: Act  # the first of its writes
    last: datetime
    ended: datetime | None = None
    pod: Pod | None = None  # the pod's own times, if they belong to this operation

    @property
    def work(self) -> Work:
        """Return the group of operations that this one belongs to."""
        return _work(self.begin)

    @property
    def updates_in_place(self) -> bool:
        """Report whether it updates a pod in place."""
        return self.begin.intent in UPDATES_IN_PLACE

    @property
    def lasts(self) -> bool:
        """Report whether it ends with the pod's readiness, and that is known."""
        made = self.begin.action == "create" and self.pod is not None
        return self.begin.kind == POD.kind and (made or self.updates_in_place)

    @property
    def seconds(self) -> float | None:
        """Return its duration; None if it is not known."""
        return (self.ended - self.begin.at).total_seconds() if self.ended else None


class OperationWave(msgspec.Struct):
    """Operations of one kind of work that were begun together."""

    operations: list[Operation]

    @property
    def work(self) -> Work:
        return self.operations[0].work

    @property
    def cause(self) -> str:
        """Return the causes, in the words of the service."""
        return named(list(dict.fromkeys(one.begin.cause for one in self.operations)))

    @property
    def began(self) -> datetime:
        return min(one.begin.at for one in self.operations)

    @property
    def last(self) -> datetime:
        """Return when the last one was begun."""
        return max(one.begin.at for one in self.operations)


def operations(writes: Iterable[Act], own: str, pods: Mapping[str, Pod]) -> list[Operation]:
    """Combine the writes, in order, without those of the status of the object itself, whose kind is `own`."""
    made: list[Operation] = []
    open_ones: dict[tuple[str, str], Operation] = {}
    for write in writes:
        where = (write.kind, write.name)
        held = open_ones.get(where)
        if not write.ok or (write.kind == own and write.subresource == "status"):
            continue
        if write.intent == Intent.REFRESH:
            if held is not None and held.ended is None:
                held.ended = write.at
        elif held is not None and held.work == _work(write) and held.ended is None:
            held.last = write.at
        else:
            open_ones[where] = operation = Operation(begin=write, last=write.at, pod=pods.get(write.name))
            made.append(operation)
    for operation in made:
        _close(operation)
    return made


def _work(write: Act) -> Work:
    """Return the kind of work. Records of earlier releases have no intent, so their action is used."""
    intent = Intent.IN_PLACE_UPDATE if write.intent in UPDATES_IN_PLACE else write.intent or write.action
    return write.kind, intent, write.revision


def _close(operation: Operation) -> None:
    """Set the end. A creation ends when the pod is ready, which the pod reports in whole seconds."""
    if not operation.lasts:
        operation.ended = operation.last
    elif operation.begin.action == "create":
        ready = operation.pod.ready if operation.pod else None
        operation.ended = max(ready, operation.ended or operation.last) if ready else None


def waves(found: Sequence[Operation], most: int = WAVES) -> list[OperationWave]:
    """Return the operations by work and pass, at most `most` waves for each work, in time order."""
    by_work: dict[Work, dict[str, OperationWave]] = {}
    for operation in found:
        passes = by_work.setdefault(operation.work, {})
        passes.setdefault(operation.begin.trace, OperationWave([])).operations.append(operation)
    merged = [wave for passes in by_work.values() for wave in _merged(list(passes.values()), most)]
    return sorted(merged, key=lambda wave: wave.began)


def _merged(found: list[OperationWave], most: int) -> list[OperationWave]:
    found.sort(key=lambda wave: wave.began)
    while len(found) > most:
        gaps = [(found[at + 1].began - found[at].last, at) for at in range(len(found) - 1)]
        _, at = min(gaps)
        found[at : at + 2] = [OperationWave(found[at].operations + found[at + 1].operations)]
    return found
