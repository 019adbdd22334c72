"""Simulated processes: effects of a crash, a pause and a skewed clock."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from flotilla_common.api.resources import NAMESPACE
from flotilla_common.bus.interface import Message
from flotilla_common.kube.interface import Api, Unreachable
from flotilla_common.service import Context, Service
from flotilla_common.settings import Settings
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.wire import ONE_WAY, PlainWire, Wire
from tests.simulation.bus.server import Server
from tests.simulation.contract.bus import SPEC, pod
from tests.simulation.history import History
from tests.simulation.loop import EPOCH, SimulatedClock, SimulatedLoop, run
from tests.simulation.process import Process


class Host:
    """An apiserver, a bus, and no cluster."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.settings = Settings()
        self.seed = 0
        self.bus = Server(loop)
        self.history = History()
        self.server = ApiServer(SimulatedClock(loop), self.history)
        self.failures: list[BaseException | None] = []
        self.one_way = ONE_WAY

    def client(self, writer: str, wire: Wire) -> Api:
        return SimulatedApi(self.server, writer, wire)

    def wire(self, writer: str) -> Wire:
        return PlainWire(self.server.clock, self.one_way)

    def failed(self, process: Process, error: BaseException | None) -> None:
        self.failures.append(error)

    @property
    def written(self) -> list[str]:
        return [version.name for version in self.history.versions]


async def write(context: Context, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await context.api.create(NAMESPACE, "", msgspec.json.encode(body))


async def write_every_second(context: Context) -> None:
    """Create namespaces a1, a2, …, and one more when cancelled."""
    number = 0
    try:
        while True:
            number += 1
            await write(context, f"{context.replica}-{number}")
            await context.clock.sleep(1)
    finally:
        await write(context, f"{context.replica}-end")


Scene = Callable[[Host, Process], Awaitable[None]]


def play(scene: Scene, work: Callable[[Context], Awaitable[None]] = write_every_second, skew: float = 0.0) -> Host:
    """Run a process `p` on a host while the scene acts on it; return the host."""

    async def main(loop: SimulatedLoop) -> Host:
        host = Host(loop)
        process = Process(host, "p", Service("toy", work), skew=skew)
        process.start()
        await scene(host, process)
        return host

    return run(main)


def test_a_crash_ends_it_at_once_without_a_last_word() -> None:
    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1.5)
        process.crash()
        await asyncio.sleep(10)
        assert not process.alive
        assert process.bus.connected is False

    host = play(scene)
    assert (host.written, host.failures) == (["p-1-1", "p-1-2"], [])


def test_a_stop_lets_it_say_its_last_word() -> None:
    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1.5)
        await process.stop()
        assert not process.alive

    host = play(scene)
    assert (host.written, host.failures) == (["p-1-1", "p-1-2", "p-1-end"], [])


def test_a_process_that_does_not_stop_is_killed() -> None:
    async def stubborn(context: Context) -> None:
        try:
            await context.clock.sleep(3600)
        finally:
            await context.clock.sleep(3600)

    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1)
        await process.stop()
        assert (process.alive, host.loop.time()) == (False, 31)

    play(scene, stubborn)


def test_a_fresh_incarnation_has_another_identity() -> None:
    async def scene(_: Host, process: Process) -> None:
        await asyncio.sleep(0.5)
        process.crash()
        process.start()
        await asyncio.sleep(0.5)
        with pytest.raises(RuntimeError, match="runs already"):
            process.start()

    assert play(scene).written == ["p-1-1", "p-2-1"]


@pytest.mark.parametrize("hurt", [Process.crash, Process.pause], ids=["crash", "pause"])
def test_a_request_that_has_left_arrives_whatever_becomes_of_its_sender(hurt: Callable[[Process], None]) -> None:
    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1 + 2 * ONE_WAY + ONE_WAY / 2)  # the second write is on its way
        assert host.written == ["p-1-1"]
        hurt(process)
        await asyncio.sleep(10)

    assert play(scene).written == ["p-1-1", "p-1-2"]


def test_a_paused_process_stands_still_and_goes_on_where_it_was() -> None:
    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1.5)
        process.pause()
        process.pause()
        await asyncio.sleep(100)
        assert len(host.written) == 2
        process.resume()
        process.resume()
        await asyncio.sleep(0.5)
        assert host.written == ["p-1-1", "p-1-2", "p-1-3"]

    play(scene)


def test_a_service_that_fails_is_reported() -> None:
    async def fail(_: Context) -> None:
        raise ValueError("as planned")

    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1)
        assert not process.alive

    [error] = play(scene, fail).failures
    assert isinstance(error, ExceptionGroup)


def test_clocks_may_be_wrong_and_monotonic_time_is_private() -> None:
    seen: list[float] = []

    async def look(context: Context) -> None:
        seen.append((context.clock.now() - EPOCH).total_seconds())
        seen.append(context.clock.monotonic())
        await context.clock.sleep(3600)

    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1)

    play(scene, look, skew=-3600)
    assert seen[0] == -3600
    assert seen[1] >= 1000


def test_a_request_without_an_answer_times_out() -> None:
    outcomes: list[str] = []

    async def work(context: Context) -> None:
        try:
            await write(context, "never")
        except Unreachable as error:
            outcomes.append(str(error))
        await context.clock.sleep(3600)

    async def scene(host: Host, process: Process) -> None:
        process.crash()
        host.one_way = 3600.0
        process.start()
        await asyncio.sleep(120)
        assert host.history.calls[-1].outcome == "unreachable"

    play(scene, work)
    assert outcomes == ["create namespaces: timed out"]


def test_a_long_pause_makes_its_follows_look_again() -> None:
    heard: list[tuple[str, int]] = []

    async def work(context: Context) -> None:
        def on_message(message: Message) -> None:
            heard.append((message.subject, message.sequence))

        await context.bus.ensure_stream(SPEC)
        await context.bus.follow(SPEC.name, (">",), on_message, lambda: heard.append(("reset", 0)))
        number = 0
        while True:
            number += 1
            await context.bus.publish(pod("a"), str(number).encode())
            await context.clock.sleep(1)

    async def scene(host: Host, process: Process) -> None:
        await asyncio.sleep(1.5)
        process.pause()
        await asyncio.sleep(70)  # beyond what may be resumed
        process.resume()
        await asyncio.sleep(0.5)
        subjects = [subject.rpartition(".")[2] for subject, _ in heard]
        assert subjects == ["a", "a", "reset", "a"]

    play(scene, work)
