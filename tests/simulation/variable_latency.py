"""Networks without faults whose speed varies: what comes first differs from seed to seed, nothing else does."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from flotilla_common.clock import Clock
from tests.simulation.apiserver.wire import ONE_WAY, Delivery, Request
from tests.simulation.bus.connection import LATENCY
from tests.simulation.bus.faults import Hop, Treatment

T = TypeVar("T")

SLOWEST = 5.0
"""The factor of the slowest message.

It is enough for the bus and the apiserver's watch to overtake each other, and for a reply to come after the event of
the same write.
"""


class VariableLatencyWire:
    """A way to the apiserver."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        await self._clock.sleep(self._way())
        reply = await serve()
        await self._clock.sleep(self._way())
        return reply

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        wait = delivery.at + self._way() - self._clock.monotonic()
        if wait > 0:
            await self._clock.sleep(wait)
        return True

    def _way(self) -> float:
        return ONE_WAY * self._rng.uniform(1 / SLOWEST, SLOWEST)


class VariableLatencyBus:
    """Ways to and from the bus."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def treatment(self, hop: Hop) -> Treatment:
        return Treatment(delay=LATENCY * self._rng.uniform(0, SLOWEST))
