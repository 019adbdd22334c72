"""The simulator's event loop: time, order, and paused and dead processes."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.loop import (
    EPOCH,
    Domain,
    SeededEntropy,
    SimulatedClock,
    SimulatedLoop,
    State,
    Stuck,
    current_domain,
    run,
)

Main = Callable[[SimulatedLoop], Coroutine[Any, Any, Any]]


def test_sleeping_takes_no_time_but_moves_the_clock() -> None:
    async def main(loop: SimulatedLoop) -> list[float]:
        clock = SimulatedClock(loop)
        seen = [clock.monotonic()]
        for seconds in (3600.0, 0.0, -5.0):
            await clock.sleep(seconds)
            seen.append(clock.monotonic())
        return seen

    assert run(main) == [0.0, 3600.0, 3600.0, 3600.0]


def test_wall_time_may_be_skewed_and_monotonic_time_starts_anywhere() -> None:
    async def main(loop: SimulatedLoop) -> None:
        clock, skewed = SimulatedClock(loop), SimulatedClock(loop, skew=-3600, origin=77)
        await clock.sleep(10)
        assert clock.now() == EPOCH + timedelta(seconds=10)
        assert skewed.now() == EPOCH + timedelta(seconds=-3590)
        assert (clock.monotonic(), skewed.monotonic()) == (10, 87)

    run(main)


def test_timeouts_and_task_groups_work_unchanged() -> None:
    async def main(loop: SimulatedLoop) -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.Event().wait()
        with pytest.raises(ExceptionGroup, match="unhandled errors"):
            await _group_of_two()
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(5))], timeout=1)
        return loop.time()

    assert run(main) == 4


async def _group_of_two() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(100))
        group.create_task(_fail_after(1))


async def _fail_after(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise ValueError("as planned")


def test_timers_of_the_same_instant_run_in_the_order_in_which_they_were_made() -> None:
    async def main(loop: SimulatedLoop) -> list[int]:
        seen: list[int] = []
        for number in range(20):
            loop.call_at(1.0, seen.append, number)
        await asyncio.sleep(2)
        return seen

    assert run(main) == list(range(20))


async def _nobody_wakes(_: SimulatedLoop) -> None:
    await asyncio.Event().wait()


async def _nobody_sleeps(loop: SimulatedLoop) -> None:
    def again() -> None:
        loop.call_soon(again)

    again()
    await asyncio.Event().wait()


@pytest.mark.parametrize("main", [_nobody_wakes, _nobody_sleeps])
def test_a_simulation_that_cannot_go_on_is_stopped(main: Main) -> None:
    with pytest.raises(Stuck):
        run(main)


def test_what_nobody_caught_is_raised_at_the_end() -> None:
    async def main(loop: SimulatedLoop) -> None:
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError):
        run(main)


def test_tasks_that_are_left_behind_are_ended_without_a_word() -> None:
    ended: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(5)
            ended.append("stubborn")

    async def group() -> None:
        try:
            async with asyncio.TaskGroup() as inner:
                inner.create_task(stubborn())
                inner.create_task(asyncio.sleep(60))
        finally:
            ended.append("group")

    async def main(_: SimulatedLoop) -> None:
        task = asyncio.ensure_future(group())
        await asyncio.sleep(1)
        assert not task.done()

    run(main)
    assert ended == ["group"]


class Beats:
    """A process that reports every second that it is alive."""

    def __init__(self, loop: SimulatedLoop, name: str = "p") -> None:
        self.domain = Domain(name)
        self.beats: list[float] = []
        self.wakes = asyncio.Event()
        self._loop = loop
        loop.create_task(self._beat(), context=self.domain.context())

    async def _beat(self) -> None:
        while True:
            self.beats.append(self._loop.time())
            await asyncio.sleep(1)


def test_a_paused_domain_stands_still_while_time_goes_on() -> None:
    async def main(loop: SimulatedLoop) -> list[float]:
        process = Beats(loop)
        await asyncio.sleep(1.5)
        process.domain.state = State.PAUSED
        await asyncio.sleep(10)
        loop.resume(process.domain)
        await asyncio.sleep(1.2)
        return process.beats

    assert run(main) == [0, 1, 11.5, 12.5]


def test_a_dead_domain_does_nothing_more_not_even_on_its_way_out() -> None:
    async def main(loop: SimulatedLoop) -> list[float]:
        process = Beats(loop)
        await asyncio.sleep(1.5)
        process.domain.state = State.DEAD
        await asyncio.sleep(10)
        return process.beats

    assert run(main) == [0, 1]


def test_tasks_and_callbacks_inherit_their_domain() -> None:
    async def main(loop: SimulatedLoop) -> list[Domain | None]:
        domain = Domain("p")
        seen: list[Domain | None] = [current_domain()]

        async def child() -> None:
            loop.call_later(1, lambda: seen.append(current_domain()))

        async def parent() -> None:
            await asyncio.gather(child())

        await loop.create_task(parent(), context=domain.context())
        await asyncio.sleep(2)
        return [None if one is None else domain for one in seen]

    assert [one and one.name for one in run(main)] == [None, "p"]


def _interleaved(seed: int) -> list[str]:
    async def main(loop: SimulatedLoop) -> list[str]:
        seen: list[str] = []

        async def work(name: str) -> None:
            for number in range(4):
                await asyncio.sleep(1)
                loop.call_at(loop.time() + 0.5, seen.append, f"{name}{number}a")
                loop.call_at(loop.time() + 0.5, seen.append, f"{name}{number}b")

        for name in "xyz":
            loop.create_task(work(name), context=Domain(name).context())
        await asyncio.sleep(10)
        return seen

    return run(main, random.Random(seed))


def test_a_random_order_mixes_domains_keeps_each_and_repeats_by_seed() -> None:
    orders = [_interleaved(seed) for seed in range(8)]
    assert orders == [_interleaved(seed) for seed in range(8)]
    assert len({tuple(order) for order in orders}) > 4
    for order in orders:
        for name in "xyz":
            own = [step for step in order if step[0] == name]
            assert own == sorted(own)


def test_sets_of_tasks_are_iterated_in_the_order_of_their_making() -> None:
    async def main(_: SimulatedLoop) -> list[str]:
        tasks = {asyncio.ensure_future(asyncio.sleep(number, f"{number}")) for number in range(9)}
        done, _pending = await asyncio.wait(tasks)
        return [task.result() for task in done]

    assert run(main) == [f"{number}" for number in range(9)]


def test_what_still_waits_in_a_task_group_is_buried() -> None:
    async def wait() -> None:
        async with asyncio.TaskGroup():
            await asyncio.sleep(1)

    async def main(loop: SimulatedLoop) -> str:
        loop.create_task(wait())
        await asyncio.sleep(0.1)
        return "over"

    assert run(main) == "over"


def test_entropy_depends_on_its_seed_alone() -> None:
    def rng(seed: str) -> tuple[float, str]:
        entropy = SeededEntropy(seed)
        return entropy.uniform(0, 10), entropy.token()

    assert rng("a") == rng("a") != rng("b")


def test_awaiting_outside_of_a_domain_from_within_it() -> None:
    """A reply from outside resumes the waiting task in its own domain."""

    async def main(loop: SimulatedLoop) -> list[str]:
        domain, reply = Domain("p"), loop.create_future()
        seen: list[str] = []

        async def ask(what: Awaitable[str]) -> None:
            seen.append(await what)

        loop.create_task(ask(reply), context=domain.context())
        await asyncio.sleep(1)
        domain.state = State.PAUSED
        reply.set_result("yes")
        await asyncio.sleep(1)
        assert not seen
        loop.resume(domain)
        await asyncio.sleep(1)
        return seen

    assert run(main) == ["yes"]
