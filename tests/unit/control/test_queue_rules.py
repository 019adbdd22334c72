"""Keys that are added twice: now and later, or several times at once."""

import asyncio

from flotilla_common.control.priority import PriorityOrder
from flotilla_common.control.queue import KeyedQueue
from tests.simulation.loop import SimulatedLoop, run
from tests.unit.control.fakes import ManualClock, NoChance, next_due
from tests.unit.control.test_queue_workers import Shop


def test_work_now_stands_for_work_later() -> None:
    async def main() -> None:
        clock = ManualClock()
        queue = KeyedQueue[str](clock, NoChance(), PriorityOrder())
        queue.add_at("a", clock.monotonic() + 10)
        queue.add("a")
        assert await queue.get() == "a"
        assert next_due(queue) is None
        queue.done("a")
        clock.advance(11)
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.close()
        assert await waiting is None

    asyncio.run(main())


def test_a_key_that_is_asked_for_again_wakes_nobody_else() -> None:
    def looks(workers: int) -> int:
        async def main(loop: SimulatedLoop) -> int:
            shop = Shop(loop, workers)
            await shop.rest()
            before = shop.clock.looks
            for _ in range(3):
                shop.queue.add("a")
            await shop.clock.sleep(1)
            cost = shop.clock.looks - before
            await shop.end()
            return cost

        return run(main)

    assert looks(workers=1) == looks(workers=50)
