"""The lives of pods: what each of them was, from one write to the next.

The bus keeps no old versions of pods. So a life is made of the writes of the workload's service, of decisions after
which all pods were ready, and of the pod as it is now. Records may be lost: each rule only needs the records that it
names, and a state lasts until something shows another one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import msgspec

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import UPDATES_IN_PLACE, Intent
from flotilla_insight.published import Act, Why

State: TypeAlias = Literal[
    "exists", "creating", "recreating", "updating", "not ready", "ready", "terminating", "deleted"
]
"""`exists`: nothing is recorded yet; `deleted`: its deletion was requested."""

UNSETTLED: frozenset[State] = frozenset({"creating", "recreating", "updating"})

SECOND = timedelta(seconds=1)
"""The precision of times in the status of a pod."""


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as it is now."""

    name: str
    ready: bool
    since: datetime | None = None
    """When condition Ready last changed."""
    created: datetime | None = None
    revision: str = ""
    terminating: bool = False
    waits_for: str = ""


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a pod from a moment on, at a revision (empty: not known)."""

    start: datetime
    state: State
    revision: str = ""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, from its first record to its last state."""

    name: str
    phases: tuple[Phase, ...]
    writes: tuple[Act, ...] = ()
    now: Now | None = None

    def at(self, moment: datetime) -> Phase | None:
        """Return the phase at that moment; None before the first."""
        index = bisect_right(self.phases, moment, key=lambda phase: phase.start)
        return self.phases[index - 1] if index else None

    @property
    def failed(self) -> bool:
        """Report whether its last write failed."""
        return bool(self.writes) and not self.writes[-1].ok


def lives(
    writes: Iterable[Act], decisions: Iterable[Why], pods: Iterable[Now], begins: datetime, now: datetime
) -> list[Life]:
    """Return the lives of all pods that were written or that exist, by name."""
    by_name: dict[str, list[Act]] = {}
    for write in writes:
        if write.kind == POD.kind:
            by_name.setdefault(write.name, []).append(write)
    present: Mapping[str, Now] = {pod.name: pod for pod in pods}
    whole = sorted(one.at for one in decisions if one.at is not None and _all_ready(one.numbers))
    return [
        _life(name, by_name.get(name, ()), whole, present.get(name), begins, now)
        for name in sorted({*by_name, *present})
    ]


def _all_ready(numbers: Mapping[str, int]) -> bool:
    """Report whether the decision saw no pod that was not ready."""
    total = numbers.get("total", 0)
    return 0 < total <= numbers.get("ready", 0)


def _life(
    name: str, writes: Sequence[Act], whole: Sequence[datetime], pod: Now | None, begins: datetime, now: datetime
) -> Life:
    course = _Course(_first(writes, pod, begins), whole)
    for write in writes:
        if write.ok:
            course.take(write)
    course.end(pod, now)
    return Life(name=name, phases=tuple(course.phases), writes=tuple(writes), now=pod)


def _first(writes: Sequence[Act], pod: Now | None, begins: datetime) -> list[Phase]:
    """Return the phase before the first write; none for a pod that the first write creates."""
    good = [write for write in writes if write.ok]
    if good and good[0].action == "create":
        return []
    if good:
        return [Phase(start=min(begins, good[0].at), state="exists")]
    if pod is None:
        return []
    return [Phase(start=max(pod.created or begins, begins), state="exists", revision=pod.revision)]


class _Course:
    """The phases of one pod, as they are found."""

    def __init__(self, phases: list[Phase], whole: Sequence[datetime]) -> None:
        self.phases = phases
        self._whole = whole

    def take(self, write: Act) -> None:
        """Add what a write began."""
        self._settle(write.at)
        state, last = self._begun(write), self.phases[-1] if self.phases else None
        revision = write.revision or (last.revision if last is not None else "")
        if state is not None and (last is None or (last.state, last.revision) != (state, revision)):
            self.phases.append(Phase(start=write.at, state=state, revision=revision))

    def _begun(self, write: Act) -> State | None:
        last = self.phases[-1].state if self.phases else None
        if write.action == "create":
            return "creating" if last is None else "recreating"
        if write.action == "delete":
            return "deleted"
        if write.intent in UPDATES_IN_PLACE:
            return "updating"
        if write.intent == Intent.REFRESH and last == "updating":
            return "ready"
        return None

    def _settle(self, until: datetime) -> None:
        """End a phase at the first decision after it that saw all pods ready."""
        last = self.phases[-1] if self.phases else None
        if last is None or last.state not in (*UNSETTLED, "exists"):
            return
        index = bisect_right(self._whole, last.start)
        if index < len(self._whole) and self._whole[index] < until:
            self._turn("ready", self._whole[index])

    def end(self, pod: Now | None, now: datetime) -> None:
        """Add what the pod shows now."""
        if pod is not None and self._is_ready_since(pod):
            self._turn("ready", pod.since or now)
        self._settle(now)
        last = self.phases[-1] if self.phases else None
        if pod is None or last is None:
            return
        if pod.terminating:
            self._turn("terminating", last.start if last.state == "deleted" else now)
        elif not pod.ready and last.state in ("ready", "exists"):
            self._turn("not ready", pod.since or last.start)
        elif pod.ready and last.state in ("ready", "exists"):
            self._turn("ready", pod.since or last.start)

    def _is_ready_since(self, pod: Now) -> bool:
        """Report whether the pod became ready after the phase began."""
        last = self.phases[-1] if self.phases else None
        if last is None or last.state not in UNSETTLED or not pod.ready or pod.since is None:
            return False
        return pod.since + SECOND > last.start

    def _turn(self, state: State, at: datetime) -> None:
        last = self.phases[-1]
        if last.state != state:
            self.phases.append(Phase(start=max(at, last.start), state=state, revision=last.revision))
