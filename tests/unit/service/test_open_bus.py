"""Processes with a bus that requires no credentials end, and log what would help."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import pytest_asyncio

from flotilla_common.bus.connection import OpenBusError
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.credentials import Credential
from flotilla_common.service import Context, Service, run_services
from flotilla_common.settings import Settings
from tests.unit.bus.test_connection import GUARDED, INFO, Server


@pytest_asyncio.fixture
async def bus() -> AsyncIterator[tuple[Server, str]]:
    """Yield a server, at first an open one, and its address."""
    there = Server(INFO)
    listening = await asyncio.start_server(there.serve, "127.0.0.1", 0)
    yield there, f"nats://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    there.cut()
    listening.close()


async def serve(context: Context) -> None:
    await asyncio.Event().wait()


def run(url: str, *, allow: bool = False) -> asyncio.Task[None]:
    settings = Settings(nats_url=url, allow_open_bus=allow, health_port=0, metrics_port=0)
    services = [Service("a", serve), Service("b", serve)]
    cluster = ApiConfig(server="http://127.0.0.1:1", credential=cast("Credential", None))  # never called
    return asyncio.create_task(run_services(services, settings, cluster))


async def test_services_end(bus: tuple[Server, str]) -> None:
    with pytest.raises(ExceptionGroup) as failures:
        await run(bus[1])
    opened, others = cast("ExceptionGroup[Exception]", failures.value).split(OpenBusError)
    assert opened is not None
    assert others is None


@pytest.mark.parametrize("allow", [True, False], ids=["allowed", "guarded"])
async def test_otherwise_they_run(bus: tuple[Server, str], allow: bool) -> None:
    server, url = bus
    server.info = INFO if allow else GUARDED
    running = run(url, allow=allow)
    async with asyncio.timeout(10):
        while server.heard.count(b"CONNECT") < 2:
            assert not running.done()
            await asyncio.wait({running}, timeout=0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_node_agent_ends(bus: tuple[Server, str], tmp_path: Path) -> None:
    argv = ["-m", "flotilla_nodeagent", "--node=n1", f"--nats={bus[1]}", f"--node-state-dir={tmp_path}"]
    agent = await asyncio.create_subprocess_exec(
        *(sys.executable, *argv, "--health-port=0", "--metrics-port=0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await agent.communicate()
    assert agent.returncode == 2, told.decode()
    assert b"--allow-open-bus" in told
    assert b"Traceback" not in told
