"""The real nats-server keeps the contract that the simulated one is held against."""

import asyncio
from pathlib import Path

import pytest

from flotilla_common.bus.nats import NatsBus
from tests.simulation.contract.bus import BusContract, Exchange, Play
from tests.simulation.contract.deliveries import DeliveryContract
from tests.support.broker import Broker, broker


class RealBench:
    """A nats-server of its own."""

    def __init__(self, nats: Broker) -> None:
        self._nats = nats
        self._clients: list[NatsBus] = []

    def bus(self, name: str) -> NatsBus:
        client = self._nats.bus(name)
        self._clients.append(client)
        return client

    async def kill(self) -> None:
        await self._nats.kill()

    async def start(self) -> None:
        await self._nats.start()

    async def wipe(self) -> None:
        await self._nats.wipe()

    async def pause(self) -> None:
        await self._nats.pause()

    async def resume(self) -> None:
        self._nats.resume()

    async def delete_stream(self, name: str) -> None:
        await self._clients[0].request(f"$JS.API.STREAM.DELETE.{name}", b"", 5)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@pytest.fixture
def play(tmp_path: Path) -> Play:
    def play(exchange: Exchange) -> None:
        asyncio.run(_on_a_server(tmp_path, exchange))

    return play


class TestNats(BusContract):
    """The contract that services need."""


class TestDeliveries(DeliveryContract):
    """The contract that node agents need."""


async def _on_a_server(state_dir: Path, exchange: Exchange) -> None:
    async with broker(state_dir) as nats:
        harness = RealBench(nats)
        try:
            await exchange(harness)
        finally:
            await harness.close()
