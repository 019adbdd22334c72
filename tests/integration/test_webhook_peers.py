"""On a real nats-server: replicas of the webhook lend each other places, without access for others (ADR 29)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_dev.cluster.nats import NatsServer, start_nats
from flotilla_webhook.spreading.peers import ASK_SECONDS, SILENT_SECONDS, Grant, LoanRequest, Peers
from tests.support.broker import BusAt
from tests.support.cluster import eventually, programs

QUESTION = LoanRequest("uid", "versionIgnored", "a", "web-1")


class Site:
    """A guarded bus with two replicas of the webhook."""

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self.buses: list[NatsBus] = []
        self.asked: list[LoanRequest] = []
        self.first, self.second = (Peers(self.bus("webhook"), SystemClock(), SystemEntropy()) for _ in range(2))

    def bus(self, service: str) -> NatsBus:
        bus = NatsBus(BusAt(self.server.url, self.server.credentials), name=f"{service}/1", clock=SystemClock())
        self.buses.append(bus)
        return bus

    async def lend(self, question: LoanRequest) -> Grant:
        self.asked.append(question)
        return Grant(question.subset, "token")


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    server = await start_nats(tmp_path, program=programs())
    made = Site(server)
    await made.first.serve(made.lend)
    yield made
    for bus in made.buses:
        await bus.close()
    await server.close(SystemClock(), grace=0)


async def connected(site: Site) -> None:
    """Wait until a question is answered."""
    clock = SystemClock()
    async with asyncio.timeout(10):
        while await site.second.ask(site.first.own, QUESTION) is None:
            await clock.sleep(0.05)


async def test_a_replica_answers_another(site: Site) -> None:
    await connected(site)
    assert await site.second.ask(site.first.own, QUESTION) == Grant("a", "token")
    assert site.asked[-1] == QUESTION


async def test_a_replica_that_has_ended_is_known_to_be_silent(site: Site) -> None:
    await connected(site)
    await site.first.close()
    assert await site.second.ask(site.first.own, QUESTION) is None
    assert not site.second.answers(site.first.own)
    await eventually(lambda: site.second.answers(site.first.own), 2 * SILENT_SECONDS)


async def test_no_other_service_asks_or_answers(site: Site) -> None:
    await connected(site)
    site.asked.clear()
    stranger = Peers(site.bus("cloneset"), SystemClock(), SystemEntropy())
    assert await stranger.ask(site.first.own, QUESTION) is None
    assert site.asked == []
    await stranger.serve(site.lend)
    assert await site.second.ask(stranger.own, QUESTION) is None
    reader = site.bus("reader")
    with pytest.raises(BusError):
        await reader.request(subjects.places(site.first.own), msgspec.json.encode(QUESTION), ASK_SECONDS)
    assert site.asked == []
