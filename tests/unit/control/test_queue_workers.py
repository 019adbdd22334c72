"""Several workers at one queue: each change wakes one worker in time, and not all of them.

In virtual time, on the simulation's loop: after a lost wake-up nothing is left to wait for, and the loop reports it.
"""

import asyncio
import random
from datetime import datetime

import pytest

from flotilla_common.control.priority import SLOT_SECONDS, PriorityOrder
from flotilla_common.control.queue import KeyedQueue
from tests.simulation.loop import SeededEntropy, SimulatedClock, SimulatedLoop, run
from tests.unit.control.fakes import NoChance

KEYS = "abcdef"


class CountingClock:
    """A clock that counts its reads: every look of a worker at the queue reads it."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self.looks = 0

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        self.looks += 1
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class Shop:
    """A queue with workers whose passes take some time."""

    def __init__(self, loop: SimulatedLoop, workers: int, *, slots: int = 100, seconds: float = 0.1) -> None:
        self.clock = CountingClock(SimulatedClock(loop))
        self.queue: KeyedQueue[str] = KeyedQueue(self.clock, NoChance(), PriorityOrder(slots))
        self.taken: list[tuple[str, float]] = []
        self.seconds = seconds
        self.workers = [loop.create_task(self._work()) for _ in range(workers)]

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            self.taken.append((key, round(self.clock.monotonic(), 6)))
            try:
                await self.clock.sleep(self.seconds)
            finally:
                self.queue.done(key)

    async def rest(self) -> None:
        """Let all ready workers work, without letting time pass."""
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.queue.close()
        await asyncio.wait(self.workers)


def looks(workers: int) -> int:
    """Count the reads that a change costs."""

    async def main(loop: SimulatedLoop) -> int:
        shop = Shop(loop, workers)
        await shop.rest()
        before = shop.clock.looks
        shop.queue.add("a")
        await shop.clock.sleep(1)
        cost = shop.clock.looks - before
        await shop.end()
        return cost

    return run(main)


def test_a_change_costs_the_same_with_many_workers() -> None:
    assert looks(workers=2) == looks(workers=50)


def test_a_due_time_costs_the_same_with_many_workers() -> None:
    def cost(workers: int) -> int:
        async def main(loop: SimulatedLoop) -> int:
            shop = Shop(loop, workers)
            shop.queue.add_at("a", 5.0)
            await shop.rest()
            before = shop.clock.looks
            await shop.clock.sleep(10)
            cost = shop.clock.looks - before
            await shop.end()
            assert shop.taken == [("a", 5.0)]
            return cost

        return run(main)

    assert cost(2) == cost(50)


def test_keys_that_come_together_are_worked_on_side_by_side() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=4)
        await shop.rest()
        for key in "abc":
            shop.queue.add(key)
        await shop.clock.sleep(0.05)
        assert sorted(shop.taken) == [("a", 0.0), ("b", 0.0), ("c", 0.0)]
        await shop.end()

    run(main)


def test_an_earlier_due_time_is_kept_by_workers_that_wait_for_a_later_one() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=3)
        shop.queue.add_at("late", 100.0)
        await shop.rest()
        shop.queue.add_at("early", 1.0)
        await shop.clock.sleep(200)
        assert shop.taken == [("early", 1.0), ("late", 100.0)]
        await shop.end()

    run(main)


def test_the_alarm_is_set_again_by_the_worker_that_it_woke() -> None:
    """The worker that the alarm woke is busy for long: the others must get the next alarm."""

    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=2, seconds=50)
        shop.queue.add_at("a", 1.0)
        shop.queue.add_at("b", 2.0)
        await shop.clock.sleep(10)
        assert shop.taken == [("a", 1.0), ("b", 2.0)]
        await shop.end()

    run(main)


def test_a_forgotten_due_time_delays_nobody() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=2)
        shop.queue.add_at("gone", 1.0)
        shop.queue.add_at("kept", 2.0)
        await shop.rest()
        shop.queue.forget("gone")
        await shop.clock.sleep(10)
        assert shop.taken == [("kept", 2.0)]
        await shop.end()

    run(main)


def test_a_woken_worker_that_is_cancelled_leaves_the_key_to_another() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=2)
        await shop.rest()
        shop.queue.add("a")  # wakes the one that waits longest
        shop.workers[0].cancel()
        await shop.clock.sleep(1)
        assert shop.taken == [("a", 0.0)]
        await shop.end()

    run(main)


def test_a_worker_that_is_cancelled_is_not_woken() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=2)
        await shop.rest()
        shop.workers[0].cancel()
        shop.queue.add("a")
        await shop.clock.sleep(1)
        assert shop.taken == [("a", 0.0)]
        await shop.end()

    run(main)


def test_a_slot_that_is_given_up_is_taken_at_once() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=3, slots=1, seconds=0.5)
        for key in "abc":
            shop.queue.add(key)
        await shop.clock.sleep(5)
        assert shop.taken == [("a", 0.0), ("b", 0.5), ("c", 1.0)]
        await shop.end()

    run(main)


def test_the_slot_of_a_worker_that_is_cancelled_is_taken_at_once() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=2, slots=1, seconds=60)
        shop.queue.add("a")
        shop.queue.add("b")
        await shop.clock.sleep(0.5)
        shop.workers[0].cancel()
        await shop.clock.sleep(1)
        assert shop.taken == [("a", 0.0), ("b", 0.5)]
        await shop.end()

    run(main)


def test_a_key_that_is_due_does_not_wait_for_the_slot_of_another() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=3, slots=1, seconds=0.0)
        shop.queue.add("a")
        await shop.clock.sleep(0.1)
        shop.seconds = 60
        shop.queue.add("slow")
        shop.queue.add("waits")
        shop.queue.add_at("a", 1.0)  # in the middle of something: needs no place
        await shop.clock.sleep(5)
        assert shop.taken == [("a", 0.0), ("slow", 0.1), ("a", 1.0), ("waits", 0.1 + SLOT_SECONDS)]
        await shop.end()

    run(main)


def test_a_slow_pass_loses_its_place_in_time() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=3, slots=1, seconds=60)
        shop.queue.add("a")
        shop.queue.add("b")
        await shop.clock.sleep(10)
        assert shop.taken == [("a", 0.0), ("b", SLOT_SECONDS)]
        await shop.end()

    run(main)


def test_all_workers_go_home_when_it_closes() -> None:
    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=8)
        shop.queue.add_at("a", 60.0)
        shop.queue.add("b")
        await shop.clock.sleep(0.05)
        await shop.end()
        assert shop.clock.monotonic() == pytest.approx(0.1)

    run(main)


class Model:
    """Random life at a queue. Every change must be followed by a pass that begins after it."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.loop = loop
        self.clock = SimulatedClock(loop)
        self.chance = random.Random(seed)
        self.queue: KeyedQueue[str] = KeyedQueue(
            self.clock, SeededEntropy(seed), PriorityOrder(self.chance.choice((1, 2, 100)))
        )
        self.open: set[str] = set()  # changed, and not worked on since
        self.busy: set[str] = set()
        self.workers = [loop.create_task(self._work()) for _ in range(self.chance.randint(1, 5))]

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            assert key not in self.busy
            self.busy.add(key)
            self.open.discard(key)
            try:
                await self.clock.sleep(self.chance.choice((0, 0, 0.1, 3)))
                self._conclude(key)
            finally:
                self.busy.discard(key)
                self.queue.done(key)

    def _conclude(self, key: str) -> None:
        match self.chance.randrange(4):
            case 0:
                self.queue.retry(key)
                self.open.add(key)
            case 1:
                self.queue.hold(key, self.chance.choice((0.05, 1)))
            case _:
                self.queue.succeed(key)

    def change(self) -> None:
        key = self.chance.choice(KEYS)
        match self.chance.randrange(6):
            case 0:
                self._replace_worker()
            case 1:
                self.queue.add_at(key, self.clock.monotonic() + self.chance.choice((0, 0.01, 1, 5)))
                self.open.add(key)
            case _:
                self.queue.add(key)
                self.open.add(key)

    def _replace_worker(self) -> None:
        """Replace a worker, adding the new one first: without any, no key would be handled."""
        self.workers.append(self.loop.create_task(self._work()))
        self.workers.pop(0).cancel()

    async def live(self) -> None:
        for _ in range(self.chance.randint(1, 25)):
            self.change()
            if pause := self.chance.choice((None, None, 0, 0.01, 2)):
                await self.clock.sleep(pause)
            elif pause is not None:
                await asyncio.sleep(0)

    async def settle(self) -> None:
        for _ in range(600):
            if not self.open and not self.busy:
                return
            await self.clock.sleep(1)
        raise AssertionError(f"nobody took {sorted(self.open)}; with workers: {sorted(self.busy)}")


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_every_change_is_worked_on(first: int) -> None:
    def life(seed: int) -> None:
        async def main(loop: SimulatedLoop) -> None:
            model = Model(loop, seed)
            await model.live()
            await model.settle()
            model.queue.close()
            await asyncio.wait(model.workers)

        run(main)

    for seed in range(first, first + 100):
        try:
            life(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_with_enough_workers_every_change_is_worked_on_at_once() -> None:
    """With more workers than keys, one is always idle, and takes a key as soon as it may be taken."""

    async def main(loop: SimulatedLoop) -> None:
        shop = Shop(loop, workers=len(KEYS) + 1, seconds=0.0)
        chance = random.Random(1)
        expected: list[tuple[str, float]] = []
        for step in range(300):
            at = float(10 * step)
            for key in chance.sample(KEYS, 3):
                delay = chance.choice((0, 0, 1, 2.5))
                shop.queue.add_at(key, at + delay) if delay else shop.queue.add(key)
                expected.append((key, at + delay))
            await shop.clock.sleep(10)
        assert sorted(shop.taken) == sorted(expected)
        await shop.end()

    run(main)
