"""Serves /healthz, /readyz and /metrics of a process.

/healthz answers 503 after a background part has ended and cannot restart: only a new process helps. Parts of a service
report what they wait for; /readyz answers 200 only when none of them waits, and otherwise names each waiting part and
its reason: a missing CRD or an unreachable bus is a state, not a crash.
"""

import asyncio
import os
import socket
from collections.abc import Sequence

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, disable_created_metrics, generate_latest


class PortTaken(OSError):
    """A port of this process cannot be bound; the message names the port and its purpose."""


class Health:
    """The health of the parts of one process, as they report it."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self._notes: dict[str, str] = {}  # of every known part: its remark, or "ok"

    def ready(self, name: str, ok: bool, why: str = "") -> None:
        """Record that the part `name` is ready, or why not. For a ready part `why` is a remark: "off: …"."""
        self._notes[name] = why if ok and why else "ok"
        if ok:
            self._waiting.pop(name, None)
        else:
            self._waiting[name] = why

    def alive(self, name: str, ok: bool, why: str = "") -> None:
        """Record that the part `name` works, or why it has ended."""
        if ok:
            self._broken.pop(name, None)
        else:
            self._broken[name] = why

    @property
    def broken(self) -> dict[str, str]:
        """Return the reasons of the parts that have ended, by name."""
        return dict(self._broken)

    @property
    def waiting(self) -> dict[str, str]:
        """Return the reasons of the parts that are not ready, by name."""
        return dict(self._waiting)

    def report(self) -> str:
        """Return one line per part, for /readyz."""
        lines = [
            f"[{'-' if name in self._waiting else '+'}]{name} {self._waiting.get(name, note)}"
            for name, note in self._notes.items()
        ]
        return "\n".join(sorted(lines)) + "\n"


async def serve(health: Health, *, health_port: int, metrics_port: int, host: str = "0.0.0.0") -> list[web.AppRunner]:  # noqa: S104 - probes come from outside the pod
    """Serve the endpoints of non-zero ports; the caller cleans the runners up. Raises PortTaken."""

    async def healthz(_: web.Request) -> web.Response:
        broken = "".join(f"{name}: {why}\n" for name, why in sorted(health.broken.items()))
        return web.Response(text=broken or "ok\n", status=503 if broken else 200)

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text=health.report(), status=503 if health.waiting else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    disable_created_metrics()  # a second series per series, which no dashboard uses
    routes: dict[int, list[web.RouteDef]] = {}
    if health_port:
        routes.setdefault(health_port, []).extend([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    if metrics_port:
        routes.setdefault(metrics_port, []).append(web.get("/metrics", metrics))
    runners: list[web.AppRunner] = []
    for port, table in routes.items():
        try:
            runners.append(await listen(table, port, host))
        except PortTaken:
            await asyncio.gather(*(one.cleanup() for one in runners))
            raise
    return runners


def bind(port: int, purpose: str, host: str = "") -> socket.socket:
    """Return a bound socket; port 0 takes a free one, no host means all IPv4 addresses. Raises PortTaken."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as failure:
        sock.close()
        where = f"{purpose} port {port} on {host or 'all addresses'}"
        raise PortTaken(f"{where}: {os.strerror(failure.errno or 0)}") from failure
    return sock


async def listen(routes: Sequence[web.RouteDef], port: int, host: str = "0.0.0.0") -> web.AppRunner:  # noqa: S104 - as above
    """Serve the routes on a port. The caller cleans the returned runner up. Raises PortTaken."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as failure:
        await runner.cleanup()
        purpose = " and ".join(route.path for route in routes)
        raise PortTaken(f"port {port} for {purpose}: {os.strerror(failure.errno or 0)}") from failure
    return runner
