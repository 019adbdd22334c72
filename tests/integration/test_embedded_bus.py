"""The bus of `flotilla run`: credentials required, and TLS and a store on disk when agents need to reach it."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from flotilla_cli.certificates import own_names
from flotilla_cli.connection import nats_url_of, open_bus
from flotilla_cli.main import main
from flotilla_cli.nats_config import credentials_of
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.subjects import ACT_STREAM
from flotilla_common.clock import SystemClock
from flotilla_common.settings import Settings
from flotilla_dev.cluster.ports import free_ports
from flotilla_dev.cluster.processes import Processes, marked
from flotilla_dev.embedded_bus import embedded_bus
from flotilla_insight.bus.connection import connected
from tests.support.broker import BusAt
from tests.support.cluster import eventually, programs


async def reached(settings: BusAt | Settings, name: str, node: str = "", seconds: float = 60) -> bool:
    """Report whether a client with these settings can connect."""
    bus = NatsBus(settings, name=name, clock=SystemClock(), inbox_prefix=subjects.node_inbox(node) if node else "")
    try:
        await eventually(lambda: bus.connected, seconds)
        if not node:
            await bus.ensure_stream(ACT_STREAM)
    except (TimeoutError, BusError):
        return False
    else:
        return True
    finally:
        await bus.close()


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the notes for other commands in the test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_who_has_no_credentials_gets_nothing_also_on_this_machine() -> None:
    with embedded_bus(Settings(), programs()) as settings:
        assert settings.nats_url.startswith("nats://127.0.0.1:")
        assert asyncio.run(reached(settings, "cloneset/1"))
        assert not asyncio.run(reached(BusAt(settings.nats_url), "stranger", seconds=3))
        assert not asyncio.run(reached(BusAt(settings.nats_url, allow_open_bus=True), "stranger", seconds=3))


def test_commands_find_it_and_their_credentials_by_themselves() -> None:
    with embedded_bus(Settings(kubeconfig="/a/kubeconfig"), programs()) as settings:
        url = nats_url_of("", "/a/kubeconfig")
        assert url == settings.nats_url

        async def read() -> None:
            async with open_bus(url) as bus:
                await connected(bus, SystemClock(), 30)
                await bus.ensure_stream(ACT_STREAM)

        asyncio.run(read())
    assert nats_url_of("", "/a/kubeconfig") == ""


def test_it_knows_how_much_memory_it_may_take(tmp_path: Path) -> None:
    with embedded_bus(Settings(nats_dir=str(tmp_path)), programs()):
        server = Processes(tmp_path).alive("nats-server")
        assert server is not None
        assert b"GOMEMLIMIT=200MiB" in Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")


@pytest.mark.parametrize("before", [True, False], ids=["credentials first", "bus first"])
def test_for_agents_everybody_needs_credentials_and_they_last(tmp_path: Path, before: bool) -> None:
    wanted = Settings(nats_listen=f"127.0.0.2:{free_ports(1)[0]}", nats_dir=str(tmp_path / "bus"))
    creds = tmp_path / "n1.creds"

    def enrol() -> None:
        reply = CliRunner().invoke(main, ["node-creds", "n1", "-o", str(creds), "--nats-dir", wanted.nats_dir])
        assert reply.exit_code == 0, reply.output
        assert ("(the running bus was reloaded)" in reply.output) is not before

    if before:
        enrol()
    for _ in range(2):
        with embedded_bus(wanted, programs()) as settings:
            assert settings.nats_url == f"tls://{wanted.nats_listen}"
            if not creds.exists():
                enrol()
            assert asyncio.run(reached(settings, "cloneset/1"))
            assert asyncio.run(reached(BusAt(settings.nats_url, str(creds)), "agent", "n1"))
            assert not asyncio.run(reached(BusAt(settings.nats_url, nats_ca=settings.nats_ca), "stranger", seconds=3))
            seed = str(credentials_of(Path(settings.nats_creds), "cloneset"))  # without the authority
            assert not asyncio.run(reached(BusAt(settings.nats_url, seed), "cloneset/1", seconds=3))


def test_on_all_addresses_its_certificate_is_for_each_of_them(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with embedded_bus(Settings(nats_listen=f":{port}", nats_dir=str(tmp_path / "bus")), programs()) as settings:
        assert settings.nats_url == f"tls://127.0.0.1:{port}"
        assert asyncio.run(reached(settings, "cloneset/1"))
        for name in own_names(""):
            if ":" not in name and name != "127.0.0.1":  # those of IPv6 may be of interfaces that it does not serve
                at = BusAt(f"tls://{name}:{port}", settings.nats_creds, settings.nats_ca)
                assert asyncio.run(reached(at, "cloneset/1")), name


def test_a_killed_server_is_started_again_at_its_place(tmp_path: Path) -> None:
    """It keeps its store, so that services continue where they were."""
    folder = tmp_path / "bus"
    with embedded_bus(Settings(nats_dir=str(folder)), programs()) as settings:
        assert asyncio.run(reached(settings, "cloneset/1"))
        victim = Processes(folder).get("nats-server")
        assert victim is not None
        os.kill(victim.pid, signal.SIGKILL)

        async def back() -> bool:
            await eventually(lambda: Processes(folder).get("nats-server") != victim)
            bus = NatsBus(settings, name="cloneset/1", clock=SystemClock())
            try:
                await eventually(lambda: bus.connected)
                return await bus.stream_state(ACT_STREAM.name) is not None
            finally:
                await bus.close()

        assert asyncio.run(back())
    assert not list(marked(folder))
