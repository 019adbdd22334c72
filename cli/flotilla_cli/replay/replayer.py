"""Plans a recorded object again, pass by pass.

A service receives a change some moments after its publication, so the state that a pass was based on lies between that
of the pass before and everything published before its record; its own writes were always visible. Each state in between
is tried, oldest first: if one of them gives the service's decision, it was that state. Only if none does, the decision
differs, and the nearest plan is shown.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from flotilla_cli.bundle.records import Bundle, Recorded
from flotilla_cli.replay.compare import ComparedPlan, Planned, at_rest, compare, place_of, planned
from flotilla_cli.replay.recording import IDLE, Pass, RecordedTables, act_of, in_order, last_why, passes
from flotilla_common.bus import subjects
from flotilla_common.clock import ManualClock
from flotilla_common.control.executor import Report
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Outcome, OutcomeKind, Plan
from flotilla_common.control.replay_controller import Decision, Planning, ReplayController
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.node.serving import Sender
from flotilla_insight.published import Act

MOST_STATES = 200
"""Number of states tried for one pass: a service that lags by more changes lags by seconds."""

HEARD_LATE = timedelta(milliseconds=100)
"""A change may arrive this much later than the record of the pass that saw it: they have different subjects."""


class ReplayStep(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, planned again. Without `done` it follows from the state at the end."""

    at: datetime
    done: Pass | None
    generation: int
    resource_version: str
    behind: int  # published changes that the service had not seen yet
    plan: Plan
    writes: tuple[Planned, ...]
    differences: tuple[str, ...]


class Replay:
    """One bundle, planned again."""

    def __init__(self, bundle: Bundle, kind: ControllerSpec[Any, Any]) -> None:
        self._bundle = bundle = msgspec.structs.replace(bundle, heard=in_order(bundle.heard))
        self._tables = RecordedTables((*bundle.known, *bundle.heard))
        self._clock = ManualClock(bundle.begin)
        planning = bundle.header.planning or Planning()
        self._controller = ReplayController(kind, self._tables, planning, self._clock)
        self._key = (bundle.header.namespace, bundle.header.name)
        self._memory = Memory()
        self._replica = ""
        self._seen = 0  # index into the recorded messages: earlier ones are in the tables
        self._learned = 0  # index into the recorded messages: writes of earlier ones are in the tables
        self._said = last_why(bundle.known)
        self.missing = 0  # versions left by writes that the file does not hold
        for recorded in bundle.known:
            self._hear(recorded)

    def steps(self) -> Iterator[ReplayStep]:
        """Yield all passes, then the decision that follows from the end."""
        for done in passes(self._bundle):
            if (step := self._step(done)) is not None:
                yield step
        if (last := self._last()) is not None:
            yield last

    def _step(self, done: Pass) -> ReplayStep | None:
        if done.replica != self._replica:  # a new holder lists everything first, and has no memory
            self._memory = Memory()
            self._advance(done.position if self._replica else 0)
            self._replica = done.replica
        self._learn_writes(done.position)
        self._advance(done.position - MOST_STATES)
        best = self._search(done)
        if best is not None:
            self._memory = _memory(best.plan, done.acts)
        self._said = done.why or self._said
        return best

    def _search(self, done: Pass) -> ReplayStep | None:
        best: ReplayStep | None = None
        latest = self._latest(done.position)
        while True:
            decision = self._decision(done.at)
            if decision is not None:
                verdict = compare(decision.plan, done, self._said)
                if best is None or len(verdict.differences) <= len(best.differences):
                    best = self._made(decision, done.at, done, verdict)
                if not verdict.differences:
                    return best
            if not self._see_next(latest):
                return best

    def _latest(self, position: int) -> int:
        """Return the index of the first message that the pass cannot have seen."""
        heard = self._bundle.heard
        until = heard[position].at + HEARD_LATE
        return next((place for place in range(position, len(heard)) if heard[place].at > until), len(heard))

    def _decision(self, now: datetime) -> Decision | None:
        self._clock.time = now
        decision = self._controller.decide(self._key, self._memory, now)
        return decision if decision is not None and self._tables.readable(decision.subject) else None

    def _made(self, decision: Decision, at: datetime, done: Pass | None, verdict: ComparedPlan) -> ReplayStep:
        ahead = self._bundle.heard[self._seen : done.position if done else self._seen]
        return ReplayStep(
            at=at,
            done=done,
            generation=decision.subject.generation,
            resource_version=decision.subject.resource_version,
            behind=sum(map(self._tables.lacks, ahead)),
            plan=decision.plan,
            writes=verdict.writes,
            differences=verdict.differences,
        )

    def _last(self) -> ReplayStep | None:
        """Return the decision at the end. It can only differ if the service had time to see this state."""
        heard, end = self._bundle.heard, self._bundle.end
        self._learn_writes(len(heard))
        self._advance(len(heard))
        decision = self._decision(end)
        if decision is None:
            return None
        since = heard[-1].at if heard else self._bundle.begin
        wakes = self._said.wake_at if self._said is not None else None
        idle = end - since >= IDLE and (wakes is None or wakes > end) and not self._memory.failures
        verdict = at_rest(decision.plan, self._said, idle=idle)
        return self._made(decision, end, None, verdict)

    def _learn_writes(self, position: int) -> None:
        """Apply the service's own writes before that index, even if it has not seen other messages."""
        while self._learned < position:
            act = act_of(self._bundle.heard[self._learned])
            if act is not None and act.replica == self._replica and not self._tables.wrote(act):
                self.missing += 1
            self._learned += 1

    def _advance(self, position: int) -> None:
        while self._seen < position:
            self._take(self._bundle.heard[self._seen])

    def _see_next(self, position: int) -> bool:
        """Apply messages up to the next that changes anything. Return False without any before the index."""
        while self._seen < position:
            if self._take(self._bundle.heard[self._seen]):
                return True
        return False

    def _take(self, recorded: Recorded) -> bool:
        self._seen += 1
        return self._hear(recorded)

    def _hear(self, recorded: Recorded) -> bool:
        """Apply a message as the service did. Return whether it may change decisions."""
        if not recorded.subject.startswith("report.v1."):
            return self._tables.take(recorded)
        try:
            self._controller.hear(Sender(*subjects.reporter(recorded.subject)), recorded.body)
        except msgspec.ValidationError:
            return False  # the service rejected it, too
        return True


def _memory(plan: Plan, acts: tuple[Act, ...]) -> Memory:
    """Return what the pass left for the next one, by the controller's own report."""
    actions = [*plan.actions, *([plan.status] if plan.status is not None else [])]
    report = Report()
    for act in acts:
        action = next((one for one in actions if place_of(planned(one)) == place_of(act)), None)
        if action is not None:
            report.add(action, Outcome(kind=OutcomeKind(act.outcome), message=act.message))
    errors = {**dict(plan.errors), **report.failures}
    return Memory(errors, tuple(report.unconfirmed), tuple(report.refused.values()), plan.notes)
