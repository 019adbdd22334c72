"""An event loop with virtual time: it jumps to the next timer as soon as nothing is ready.

The real code runs on it unchanged (tasks, timeouts, task groups), in one thread, without sockets and without waiting,
and always in the same order. Every callback belongs to a domain, the simulated process that it is part of, or to none.
A domain can be paused (its callbacks are set aside while time goes on, like SIGSTOP) and killed (its callbacks are
dropped; nothing more leaves it).
"""

import asyncio
import enum
import gc
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple, Unpack
from uuid import UUID

from tests.simulation.tasks import SimulatedTask, bury

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall time of fake second 0, where no process's clock is skewed."""

MOST_STEPS_AT_ONCE = 100_000
"""Steps without any time passing that count as a loop without end; a large burst takes a tenth of them."""


class Stuck(Exception):
    """A simulation that cannot continue: every task waits without a timer, or a task never waits."""


class State(enum.Enum):
    """The state of a domain, which decides about its callbacks."""

    RUNNING = enum.auto()
    PAUSED = enum.auto()
    DEAD = enum.auto()


class Domain:
    """The steps of one incarnation of a simulated process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = State.RUNNING
        self.set_aside: list[Timer] = []

    @property
    def dead(self) -> bool:
        """Nothing of it runs any more."""
        return self.state is State.DEAD

    def context(self) -> Context:
        """Return a fresh context for code of this domain; tasks and callbacks inherit it."""
        context = Context()
        context.run(DOMAIN.set, self)
        return context


DOMAIN: ContextVar[Domain] = ContextVar("DOMAIN")
"""The domain of the running callback; unset outside of all processes."""


def current_domain() -> Domain | None:
    """Return the process that the running callback is part of."""
    return DOMAIN.get(None)


class Timer(asyncio.TimerHandle):
    """A callback that waits for its turn."""

    __slots__ = ("args", "callback", "context", "due")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context, due: float) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = context
        self.due = due

    def cancel(self) -> None:
        """Do not run it. What it refers to is let go at once, because a cancelled timer stays in the heap."""
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        return self.callback is None

    def when(self) -> float:
        return self.due


class SimulatedLoop(asyncio.BaseEventLoop):
    """The event loop with virtual time.

    With `order`, ready callbacks of different domains run in a random order; those of one domain keep theirs,
    as asyncio promises.
    """

    def __init__(self, order: random.Random | None = None) -> None:
        super().__init__()
        self.steps = 0
        self.unhandled: list[BaseException] = []
        self._order = order
        self._time = 0.0
        self._queue: deque[Timer] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._made = 0  # timers, tasks: what is made earlier comes first
        self._moved_at = 0  # the step at which time moved last
        self._tasks: list[SimulatedTask[Any]] = []
        self._tasks_limit = 256
        self._buried = False

    def time(self) -> float:
        """Fake seconds since the start."""
        return self._time

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        step = Timer(callback, args, copy_context() if context is None else context, self._time)
        self._queue.append(step)
        return step

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        step = Timer(callback, args, copy_context() if context is None else context, when)
        self._made += 1
        heapq.heappush(self._timers, (when, self._made, step))
        return step

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Create a task, and keep it alive until the end.

        The `finally` blocks of a dead process must not run when the garbage collector finds its tasks.
        """
        self._made += 1
        task: SimulatedTask[T] = SimulatedTask(self._made, coro, self, name, context)
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_limit:
            self._tasks = [one for one in self._tasks if not one.done()]
            self._tasks_limit = 2 * len(self._tasks) + 256
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep unhandled errors: `simulate` raises them at the end."""
        if not self._buried:
            self.unhandled.append(context.get("exception") or RuntimeError(context["message"]))

    def resume(self, domain: Domain) -> None:
        """Let a paused domain go on with what was set aside, in its order."""
        domain.state = State.RUNNING
        self._queue.extend(domain.set_aside)
        domain.set_aside.clear()

    def bury(self) -> None:
        """End everything that still runs, here and now."""
        self._buried = True
        bury(self._tasks)
        self._queue.clear()
        self._timers.clear()

    def _run_once(self) -> None:
        """One turn of `BaseEventLoop.run_forever`: everything that is ready now."""
        queue = self._queue
        if not queue:
            self._advance()
        for _ in range(len(queue)):
            step = queue.popleft()
            callback, context = step.callback, step.context
            if callback is None:
                continue
            domain = context.get(DOMAIN)
            if domain is not None and domain.state is not State.RUNNING:
                domain.set_aside.append(step)  # a dead one's are kept so that nothing is finalised, and never run
                continue
            self.steps += 1
            try:
                context.run(callback, *step.args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - as any event loop: a callback's failure is not the loop's
                self.unhandled.append(error)
        if self.steps - self._moved_at > MOST_STEPS_AT_ONCE:
            raise Stuck(f"{MOST_STEPS_AT_ONCE} steps at fake second {self._time:.3f}: somebody never sleeps")

    def _advance(self) -> None:
        """Move the time to the next timer that still matters, and make all that are due by then ready."""
        timers, queue = self._timers, self._queue
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        if not timers:
            raise Stuck("nothing is scheduled: everybody waits for somebody else")
        if timers[0][0] > self._time:
            self._time, self._moved_at = timers[0][0], self.steps
        while timers and timers[0][0] <= self._time:
            queue.append(heapq.heappop(timers)[2])
        if self._order is not None and len(queue) > 1:
            _mix(queue, self._order)


def _mix(queue: deque[Timer], order: random.Random) -> None:
    """Interleave the domains' steps at random; within a domain they keep their order."""
    lanes: dict[Domain | None, deque[Timer]] = {}
    turns: list[Domain | None] = []
    for step in queue:
        domain = step.context.get(DOMAIN)
        lanes.setdefault(domain, deque()).append(step)
        turns.append(domain)
    if len(lanes) > 1:
        order.shuffle(turns)
        queue.clear()
        queue.extend(lanes[domain].popleft() for domain in turns)


class SimulatedClock:
    """A process's clock. Its wall time may be wrong by `skew` seconds; its monotonic time starts anywhere."""

    def __init__(self, loop: SimulatedLoop, *, skew: float = 0.0, origin: float = 0.0) -> None:
        self.skew = skew
        self._loop = loop
        self._origin = origin

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time() + self.skew)

    def monotonic(self) -> float:
        return self._origin + self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))


class SeededEntropy:
    """Chance that is the same in every run with the same seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def token(self) -> str:
        return f"{self._random.getrandbits(40):010x}"

    def uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))


def run(main: Callable[[SimulatedLoop], Coroutine[Any, Any, T]], order: random.Random | None = None) -> T:
    """Run `main` to its end in simulated time, whichever tasks it leaves behind.

    Raises what it raises, and what any callback or forgotten task raised. The garbage collector is off meanwhile: its
    timing must not change the run.
    """
    loop = SimulatedLoop(order)
    collecting = gc.isenabled()
    gc.disable()
    try:
        result = loop.run_until_complete(main(loop))
        if loop.unhandled:
            raise loop.unhandled[0]
        return result
    finally:
        loop.bury()
        loop.close()
        if collecting:
            gc.enable()
