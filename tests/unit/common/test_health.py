"""/healthz, /readyz and /metrics."""

import socket

import aiohttp
import pytest

from flotilla_common import health
from flotilla_common.health import Health, PortTaken
from flotilla_dev.cluster.ports import free_ports


@pytest.mark.parametrize(
    ("parts", "code", "text"),
    [
        pytest.param([("cloneset", False, "starting")], 503, "[-]cloneset starting\n", id="starting"),
        pytest.param(
            [("cloneset", False, "waiting for CRD clonesets.apps.kruise.io"), ("apiserver", True, "")],
            503,
            "[+]apiserver ok\n[-]cloneset waiting for CRD clonesets.apps.kruise.io\n",
            id="waiting is a state",
        ),
        pytest.param([("cloneset", False, "starting"), ("cloneset", True, "")], 200, "[+]cloneset ok\n", id="ready"),
        pytest.param(
            [("x-controller", True, "off: X is not named")], 200, "[+]x-controller off: X is not named\n", id="off"
        ),
        pytest.param([("mirror", True, "a remark"), ("mirror", True, "")], 200, "[+]mirror ok\n", id="remark ends"),
    ],
)
async def test_readyz(parts: list[tuple[str, bool, str]], code: int, text: str) -> None:
    vital = Health()
    for name, ok, why in parts:
        vital.ready(name, ok, why)
    (port,) = free_ports(1)
    runners = await health.serve(vital, health_port=port, metrics_port=port, host="127.0.0.1")
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            async with session.get("/readyz") as reply:
                assert (reply.status, await reply.text()) == (code, text)
            async with session.get("/healthz") as reply:
                assert (reply.status, await reply.text()) == (200, "ok\n")  # a state is no reason to be killed
            async with session.get("/metrics") as reply:
                page = await reply.text()
    finally:
        for runner in runners:
            await runner.cleanup()
    assert "process_resident_memory_bytes" in page
    assert "process_cpu_seconds_total" in page
    assert "_created" not in page


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} for /healthz and /readyz: Address already in use"):
            await health.serve(Health(), health_port=port, metrics_port=0, host="127.0.0.1")
