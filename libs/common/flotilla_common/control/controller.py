"""The control loop that every kind shares: queue, gather, plan, execute, status (architecture.md §5).

A kind provides three functions: `gather` builds a snapshot of one object from the mirror, `plan` (pure) turns it into a
Plan, and `reread` reads the object's dependents directly from the apiserver after a write whose outcome is unknown. The
loop does the rest: one pass per object at a time, backoff, timers, coalescing, the fence, status writes, `why`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control import metrics
from flotilla_common.control.executor import Executor, Report
from flotilla_common.control.fence import Fence
from flotilla_common.control.journal import Journal
from flotilla_common.control.keystate import Key, KeyStates, Memory, StatusThrottle
from flotilla_common.control.metrics import WAITING, WaitingObjects
from flotilla_common.control.plan import Event, ObjectRef, Outcome, OutcomeKind, Patch, Plan, Reason, State
from flotilla_common.control.priority import PriorityOrder
from flotilla_common.control.queue import Backoff, KeyedQueue
from flotilla_common.control.shards import Shards, shard_of
from flotilla_common.control.writes import with_write_failures
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.table import VersionsWentBack
from flotilla_common.tracing.context import change

PLANNING_SHARE = 10.0
"""After a pass, the object rests for this many times the planning time: planning takes a tenth of a core at most."""

ANSWER_SHARE = 4.0
"""After a pass without writes, the object rests for this many times the apiserver's current write latency.

On a busy apiserver, pods that become ready one after the other are handled a few at a time.
"""

LONGEST_REST = 0.2
"""Longest such rest in seconds."""

SETTLED_REST = 3.0
"""Factor of the rest of settled objects: nothing but their counts is about to change."""

SLOT_SHARE = 5
"""One of this many workers may start idle objects; the others continue objects in progress (see `priority`).

With `idle_first` all workers may: work that starts at a set time does not wait for objects in progress.
"""


class Snapshot(Protocol):
    """The result of `gather`: at least the object that is planned."""

    @property
    def subject(self) -> ObjectRef: ...


PASSING_SECONDS = 1.0
"""The longest backoff after a conflict or a 429, regardless of other refusals before.

Another writer made progress, or the apiserver is busy: waiting longer does not help. With growing delays, jobs that
share NodeImages would starve each other, and a used-up quota would keep a pod from being marked ready.
"""

_PASSING = frozenset({OutcomeKind.CONFLICT, OutcomeKind.THROTTLED})
S = TypeVar("S", bound=Snapshot)
Gather = Callable[[Key, Memory], S | None]
SubjectOf = Callable[[Key], ObjectRef | None]
Planner = Callable[[S, datetime], Plan]
"""Plans one pass, without waiting, clock or random numbers: the same snapshot gives the same plan."""
Reread = Callable[[Key], Awaitable[None]]


class Controller(Generic[S]):
    """A controller that plans and executes the objects of one kind."""

    def __init__(
        self,
        *,
        name: str,
        resource: Resource,
        gather: Gather[S],
        subject_of: SubjectOf,
        plan: Planner[S],
        reread: Reread,
        executor: Executor,
        journal: Journal,
        shards: Shards,
        clock: Clock,
        entropy: Entropy,
        workers: int = 3,
        idle_first: bool = False,
        backoff: Backoff | None = None,
    ) -> None:
        self.name = name
        self.resource = resource
        self._metrics = metrics.ControllerMetrics(name, clock, workers)
        self._order: PriorityOrder[Key] = PriorityOrder(workers if idle_first else max(workers // SLOT_SHARE, 1))
        self._states: KeyStates[Key] = KeyStates()
        self.queue: KeyedQueue[Key] = KeyedQueue(
            clock, entropy, self._order, backoff, self._metrics.queue, self._states
        )
        self._gather = gather
        self._subject_of = subject_of  # identity of an object that cannot be gathered
        self._plan = plan
        self._reread = reread
        self._executor = executor
        self._journal = journal
        self._shards = shards
        self._clock = clock
        self._entropy = entropy
        self._workers = workers
        self._throttle = StatusThrottle()
        self._waiting_objects = WaitingObjects(resource.kind, clock, shards.owns)
        WAITING.follow(name, self._waiting_objects)
        self._log = structlog.get_logger(controller=name)

    def enqueue(self, namespace: str, name: str) -> None:
        """Queue the object, because a change may concern it."""
        if self._shards.owns(namespace, name):
            self.queue.add((namespace, name))

    def enqueue_shards(self, keys: list[Key], gained: frozenset[int]) -> None:
        """Queue everything in newly gained shards, and publish its reasons again."""
        for key in keys:
            if shard_of(*key, self._shards.count) in gained:
                if state := self._states.get(key):
                    state.published = ()
                self.queue.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    def clock_was_set(self) -> None:
        """Recompute the timers of all plans, because the wall clock was set."""
        for key, state in self._states.items():
            if state.wake_at is not None:
                self._wake(key, state.wake_at)

    def stop(self) -> None:
        """Start no more passes; `run` returns when the running passes are done."""
        self.queue.close()

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            with self._metrics.running():
                try:
                    result = await self._reconcile(key)
                except (ApiError, Unreachable) as error:
                    result = "error"
                    delay = self.queue.retry(key)
                    self._log.warning("pass failed", object="/".join(key), error=str(error), retry_in=round(delay, 3))
                except VersionsWentBack:
                    raise  # concerns all objects
                except Exception:  # noqa: BLE001 - one bad object must not stop the others
                    result = "error"
                    delay = self.queue.retry(key)
                    self._log.exception("pass failed", object="/".join(key), retry_in=round(delay, 3))
                finally:
                    self.queue.done(key)
            self._metrics.ended(result)

    async def _reconcile(self, key: Key) -> str:
        """Run one pass; return success, error, requeue or requeue_after for the metrics."""
        state = self._states[key]
        state.wake_at = None
        fence = self._shards.fence(*key)
        if not fence.may_send():
            return "success"
        if state.must_reread:
            await self._reread(key)
            state.must_reread = False
        trace, began = self._entropy.token(), self._clock.now()
        with bound_contextvars(object="/".join(filter(None, key)), trace=trace):
            decided = self._decide(key)
            if decided is None:
                self._forget(key)
                return "success"
            subject, plan, planning = decided
            self._metrics.planned(planning)
            self._waiting_objects.planned(key, plan.reasons)
            self.queue.hold(key, planning * PLANNING_SHARE)
            with bound_contextvars(trace_id=change(subject.uid, subject.generation).trace_id):
                published = self._publish_reasons(key, subject, plan, trace)
                self._order.mark_slow_start(key, slow=plan.starts_slowly)
                report = await self._carry_out(key, subject, plan, trace, fence)
                if published or report.counts:
                    self._journal.passed(subject, plan, trace=trace, began=began)
                self._rest(key, plan, report, planning)
                return self._settle(key, plan, report)

    def _rest(self, key: Key, plan: Plan, report: Report, planning: float) -> None:
        """Let the object rest after a pass without writes; `planning` are the seconds that its planning took."""
        if not report.counts:
            rest = min(self._executor.answer_seconds * ANSWER_SHARE, LONGEST_REST)
            rest *= SETTLED_REST if plan.settled else 1
            self.queue.hold(key, max(planning * PLANNING_SHARE, rest))

    def _decide(self, key: Key) -> tuple[ObjectRef, Plan, float] | None:
        """Plan the object; return None if it does not exist or is not ready. The float is the planning time in seconds.

        An object that cannot be gathered or planned gets a reason and an event; other objects are not affected.
        """
        subject, started = None, self._clock.monotonic()
        memory = self._states[key].memory
        try:
            snapshot = self._gather(key, memory)
            if snapshot is None:
                return None
            subject, started = snapshot.subject, self._clock.monotonic()
            plan = with_write_failures(self._plan(snapshot, self._clock.now()), memory.refused)
        except Exception as error:
            subject = subject or self._subject_of(key)
            if subject is None:
                raise  # only the log is left to report it in
            self._log.exception("planning failed")
            plan = failed_plan(error)
        return subject, plan, self._clock.monotonic() - started

    def _publish_reasons(self, key: Key, subject: ObjectRef, plan: Plan, trace: str) -> bool:
        """Publish the reasons if there are any and they changed; return whether they were published."""
        self._log.debug(
            "planned",
            generation=subject.generation,
            chains=[len(stage.chains) for stage in plan.stages],
            status=plan.status is not None,
            reasons=[reason.code for reason in plan.reasons],
            numbers=plan.numbers,
            wake_at=plan.wake_at and plan.wake_at.isoformat(),
        )
        state = self._states[key]
        content = (subject.uid, subject.generation, plan.reasons, plan.numbers, plan.errors)
        changed = any(content[2:]) and state.published != content
        if changed:
            state.published = content
            self._journal.why(subject, plan, trace=trace)
        return changed

    async def _carry_out(self, key: Key, subject: ObjectRef, plan: Plan, trace: str, fence: Fence) -> Report:
        """Write the dependents, and the status first, last, or later (see `StatusThrottle`)."""
        early, state = None, self._states[key]
        if plan.status is None:
            self._throttle.unneeded(state)
        elif state.status_owed and not plan.status_after_success:
            early = await self._write_status(key, subject, plan.status, trace, fence)
        report = await self._executor.run(subject, plan, fence, trace)
        if plan.status is None or (plan.status_after_success and (report.failed or plan.errors)):
            await self._after_status(subject, plan, trace, fence)
        elif early is not None:
            report.add(plan.status, early)
        elif self._is_due(key, plan, wrote=bool(report.counts)):
            report.add(plan.status, await self._write_status(key, subject, plan.status, trace, fence))
        else:
            await self._after_status(subject, plan, trace, fence)
        return report

    def _is_due(self, key: Key, plan: Plan, *, wrote: bool) -> bool:
        """Report whether this pass writes the status; if not, queue the key for it."""
        now = self._clock.monotonic()
        due = self._throttle.due(self._states[key], now, urgent=plan.urgent_status, wrote=wrote)
        if due <= now:
            return True
        if due == float("inf"):
            self.queue.add(key)
        else:
            self.queue.add_at(key, due)
        return False

    async def _write_status(self, key: Key, subject: ObjectRef, status: Patch, trace: str, fence: Fence) -> Outcome:
        self._throttle.written(self._states[key], self._clock.monotonic())
        outcome = await self._executor.single(subject, status, fence, trace)
        if outcome.kind is OutcomeKind.CONFLICT:
            self._throttle.missed(self._states[key], self._clock.monotonic())
        return outcome

    async def _after_status(self, subject: ObjectRef, plan: Plan, trace: str, fence: Fence) -> None:
        """Run the writes on the object itself, unless this pass writes the status.

        A status write in between changes the object's version; then the next pass sends them.
        """
        if plan.after_status:
            await self._executor.run(subject, Plan(stages=plan.after_status), fence, trace)

    def _settle(self, key: Key, plan: Plan, report: Report) -> str:
        """Schedule the next pass; return the result for the metrics."""
        errors = {**dict(plan.errors), **report.failures}
        state = self._states[key]
        state.memory = Memory(errors, tuple(report.unconfirmed), tuple(report.refused.values()), plan.notes)
        if report.unknown:
            state.must_reread = True
        if report.failed or errors:
            # A refused object has no pods that wait for its next pass: it would keep other objects from starting.
            self._order.mark_slow_start(key, slow=False)
            longest = PASSING_SECONDS if report.counts.keys() & _PASSING else float("inf")
            # Deadlines and schedules do not wait for a backoff.
            self.queue.retry(key, at_least=report.retry_after, at_most=longest)
            if plan.wake_at is not None and plan.wake_at > self._clock.now():
                self._wake(key, plan.wake_at)
            if errors:
                outcomes = {kind.value: count for kind, count in report.counts.items()}
                self._log.warning("pass incomplete", errors=errors, outcomes=outcomes)
            return "requeue" if report.counts.get(OutcomeKind.CONFLICT) and not errors else "error"
        self.queue.succeed(key)
        if plan.wake_at is None:
            return "success"
        self._wake(key, plan.wake_at)
        return "requeue_after"

    def _wake(self, key: Key, at: datetime) -> None:
        self._states[key].wake_at = at
        wait = (at - self._clock.now()).total_seconds()
        self.queue.add_at(key, self._clock.monotonic() + max(wait, 0))

    def _forget(self, key: Key) -> None:
        self.queue.forget(key)
        self._waiting_objects.forget(key)


def failed_plan(error: Exception) -> Plan:
    """Return the plan for an object that cannot be planned: an event, a reason, and a retry."""
    text = f"{type(error).__name__}: {error}"
    return Plan(
        events=(Event("FailedPlan", f"failed to plan: {text}", warning=True),),
        reasons=(Reason(State.STUCK, "PlanningFailed", f"planning failed: {text}"),),
        errors=(("plan", text),),
    )
