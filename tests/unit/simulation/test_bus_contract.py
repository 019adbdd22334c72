"""The simulated bus keeps the contract of the real one."""

import pytest

from flotilla_common.bus.interface import Bus
from tests.simulation.bus.client import SimulatedBus
from tests.simulation.bus.server import Server
from tests.simulation.contract.bus import BusContract, Exchange, Play
from tests.simulation.contract.deliveries import DeliveryContract
from tests.simulation.loop import Domain, SimulatedClock, SimulatedLoop, run


class SimulatedBench:
    """A simulated server."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.server = Server(loop)

    def bus(self, name: str) -> Bus:
        return SimulatedBus(self._loop, self.server, name, SimulatedClock(self._loop), Domain(name).context())

    async def kill(self) -> None:
        self.server.kill()

    async def start(self) -> None:
        self.server.revive()

    async def wipe(self) -> None:
        self.server.wipe()

    async def pause(self) -> None:
        self.server.pause()

    async def resume(self) -> None:
        self.server.resume()

    async def delete_stream(self, name: str) -> None:
        self.server.lose_stream(name)


@pytest.fixture
def play() -> Play:
    def play(exchange: Exchange) -> None:
        async def main(loop: SimulatedLoop) -> None:
            await exchange(SimulatedBench(loop))

        run(main)

    return play


class TestSimulatedBus(BusContract):
    """Properties that services rely on."""


class TestSimulatedDeliveries(DeliveryContract):
    """Properties that node agents rely on."""
