"""The builder of a plan: collects the steps of a pass, and keeps it from writing an object twice."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from flotilla_common.api.meta import Object
from flotilla_common.control.plan import Chain, Event, Patch, Plan, Reason, Stage, State
from flotilla_common.control.text import first_names

MAX_CHAINS_PER_PASS = 128
"""Creates, updates or deletes that one pass plans at most.

It is large enough to keep the executor's adaptive limit busy, small enough that a set of thousands is handled in
overlapping waves, each planned from the results of the one before.
"""


class Deadlines:
    """The earliest of the times at which a pass is needed again."""

    def __init__(self) -> None:
        self.next: datetime | None = None

    def until(self, moment: datetime | None) -> None:
        """Plan again at `moment` or earlier."""
        if moment is not None:
            self.next = moment if self.next is None else min(self.next, moment)

    def not_before(self, moment: datetime) -> None:
        """Postpone the next pass to `moment`, for passes that would follow each other closely."""
        if self.next is not None:
            self.next = max(self.next, moment)

    def passed(self, moment: datetime, now: datetime) -> bool:
        """Report whether the moment has come; if not, plan again then."""
        if now < moment:
            self.until(moment)
        return now >= moment


def refused(code: str, message: str) -> Plan:
    """Return the plan of an object that cannot be handled until its spec changes, with a reason and an event.

    The event is there because no status shows the problem.
    """
    return Plan(
        reasons=(Reason(State.STUCK, code, message),),
        events=(Event(code, message, warning=True),),
    )


class PlanBuilder:
    """The stages, events, reasons, numbers, notes and timers of one pass, while it is planned."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.events: list[Event] = []
        self.reasons: list[Reason] = []
        self.errors: list[tuple[str, str]] = []
        self.numbers: dict[str, int] = {}
        self.notes: dict[str, str] = {}
        self.deadlines = Deadlines()
        self.touched: set[str] = set()  # uids of objects that this pass already writes

    def stage(
        self,
        chains: Sequence[Chain],
        *,
        slow_start: int = 0,
        stop_on_failure: bool = True,
        beside_next: bool = False,
        at: int | None = None,
    ) -> None:
        """Add a stage at the end or at position `at`, unless it is empty."""
        kept = tuple(chain for chain in chains if chain)
        if kept:
            stage = Stage(chains=kept, slow_start=slow_start, stop_on_failure=stop_on_failure, beside_next=beside_next)
            self.stages.insert(len(self.stages) if at is None else at, stage)

    def reason(
        self, state: State, code: str, message: str, objects: Sequence[Object | str] = (), *, symptom: bool = False
    ) -> None:
        """Add the reason for the object's current state; the names of the first `objects` are included for scripts."""
        self.reasons.append(Reason(state, code, message, first_names(objects), symptom))

    def tell_once(self, event: Event, notes: Mapping[str, str]) -> None:
        """Record an event of a lasting state, unless `notes` of the pass before show that it was recorded."""
        if notes.get(event.reason) != event.message:
            self.events.append(event)
        self.notes[event.reason] = event.message

    def touch(self, obj: Object) -> bool:
        """Claim the object for a write of this pass; return False when an earlier step already writes it."""
        if obj.metadata.uid in self.touched:
            return False
        self.touched.add(obj.metadata.uid)
        return True

    def plan(
        self,
        *,
        status: Patch | None = None,
        urgent_status: bool = False,
        status_after_success: bool = False,
        after_status: Sequence[Stage] = (),
        numbers: Mapping[str, int] | None = None,
        settled: bool = False,
    ) -> Plan:
        """Return the finished plan. `numbers` come before those of the steps."""
        return Plan(
            stages=tuple(self.stages),
            events=tuple(self.events),
            status=status,
            urgent_status=urgent_status,
            status_after_success=status_after_success,
            after_status=tuple(after_status),
            reasons=tuple(self.reasons),
            numbers={**(numbers or {}), **self.numbers},
            wake_at=self.deadlines.next,
            settled=settled,
            notes=self.notes,
            errors=tuple(self.errors),
        )
