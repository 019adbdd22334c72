"""Three servers of the chart's bus that die one after the other, or all at once.

Nothing is lost if each has started before the next one dies. That a server has started is what the chart's probe says:
upgrades and drains stop the next one then.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_common.installed import published
from flotilla_dev.cluster.ports import HOST, free_ports, serves
from flotilla_dev.cluster.processes import Processes, until
from flotilla_watcher.writer import StreamLost, StreamWriter
from tests.support.broker import BusAt
from tests.support.chart import at, rendered
from tests.support.cluster import programs
from tests.support.helm import Helm

Answer = TypeVar("Answer")

SERVERS = 3
STREAMS = (*subjects.RECORDS, *(subjects.kube_stream(resource) for resource in published()))
PODS = 200
PROBE = "spec.template.spec.containers.0.startupProbe.httpGet.path"
CONFIGURATION = """
server_name: server-{number}
host: {host}
port: {client}
http: "{host}:{monitor}"
jetstream {{ store_dir: "{folder}/store-{number}", max_memory_store: 1GB, max_file_store: 4GB }}
cluster {{ name: test, listen: "{host}:{route}", routes: [{routes}] }}
"""


class Ports(msgspec.Struct, frozen=True):
    client: int
    monitor: int
    route: int


class Servers:
    """The servers, each a process on ports of its own."""

    def __init__(self, folder: Path, probe: str) -> None:
        self._processes = Processes(folder)
        self._probe = probe
        self._clock = SystemClock()
        self.ports = [Ports(*free_ports(3)) for _ in range(SERVERS)]
        routes = ", ".join(f'"nats://{HOST}:{one.route}"' for one in self.ports)
        for number, ports in enumerate(self.ports):
            made = {**msgspec.structs.asdict(ports), "number": number, "host": HOST, "folder": folder, "routes": routes}
            (folder / f"{number}.conf").write_text(CONFIGURATION.format(**made))
        self._folder = folder

    def start(self, number: int) -> None:
        argv = [str(programs()("nats-server")), "--config", str(self._folder / f"{number}.conf")]
        self._processes.spawn(f"server-{number}", argv, bound=True)

    async def started(self, number: int) -> None:
        """Wait until the chart's probe succeeds."""
        process = self._processes.get(f"server-{number}")
        assert process is not None
        url = f"http://{HOST}:{self.ports[number].monitor}{self._probe}"
        await until(partial(serves, url), process, self._clock, 60, f"server {number} did not start")

    async def kill(self, *numbers: int) -> None:
        await self._processes.stop([f"server-{number}" for number in numbers], self._clock, grace=0)


@pytest_asyncio.fixture
async def servers(chart: Helm, tmp_path: Path) -> AsyncIterator[Servers]:
    probe = at(rendered(chart, "nats.replicas=3").one("StatefulSet", "flotilla-bus"), PROBE)
    made = Servers(tmp_path, probe)
    try:
        for number in range(SERVERS):
            made.start(number)
        for number in range(SERVERS):
            await made.started(number)
        yield made
    finally:
        await made.kill(*range(SERVERS))


@pytest_asyncio.fixture
async def bus(servers: Servers) -> AsyncIterator[NatsBus]:
    urls = ",".join(f"nats://{HOST}:{ports.client}" for ports in servers.ports)
    client = NatsBus(BusAt(urls, allow_open_bus=True, bus_copies=SERVERS), name="test", clock=SystemClock())
    yield client
    await client.close()


async def answered(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask until there is an answer: a stream without a leader gives none."""
    while True:
        try:
            return await ask()
        except BusError:
            await asyncio.sleep(0.1)


@pytest.mark.timeout(180)
async def test_the_next_server_may_be_stopped_when_the_last_has_started(servers: Servers, bus: NatsBus) -> None:
    for spec in STREAMS:
        await answered(partial(bus.ensure_stream, spec))
    for number in range(PODS):
        await bus.publish(subjects.kube(POD, "shop", f"web-{number}"), b"{}")
    before = [await answered(partial(bus.stream_state, spec.name)) for spec in STREAMS]
    for number in range(SERVERS):
        await servers.kill(number)
        servers.start(number)
        await servers.started(number)
    assert [await answered(partial(bus.stream_state, spec.name)) for spec in STREAMS] == before
    assert len(await bus.stream_subjects(subjects.kube_stream(POD).name)) == PODS


@pytest.mark.timeout(180)
async def test_a_stream_that_all_servers_lost_is_another_one_afterwards(servers: Servers, bus: NatsBus) -> None:
    """By itself it would be the same without messages, and readers would continue in the middle of the new ones."""
    spec, marker = subjects.kube_stream(POD), subjects.kube_marker(POD)

    def writer() -> StreamWriter:
        return StreamWriter(bus=bus, clock=SystemClock(), spec=spec, marker_subject=marker, fence=lambda: True)

    first = writer()
    await answered(first.open)
    await first.begin("0.a", b"{}")
    before = await answered(partial(bus.stream_state, spec.name))
    await servers.kill(*range(SERVERS))
    for number in range(SERVERS):
        servers.start(number)
    with pytest.raises(StreamLost):
        await first.check()
    await answered(writer().open)
    after = await answered(partial(bus.stream_state, spec.name))
    assert before is not None
    assert after is not None
    assert after.created != before.created
