"""/healthz, /readyz and /metrics of a process.

/healthz answers 503 while a part that works in the background has ended and cannot begin again: only a new process
helps. Parts of a service report what they wait for; /readyz answers 200 only when nobody waits, and otherwise says in
plain words who waits for what: a missing CRD or an unreachable bus is a state, not a crash.
"""

import asyncio
import os
from collections.abc import Sequence

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, disable_created_metrics, generate_latest


class PortTaken(OSError):
    """A port of this process cannot be had; the message names it and what it is for."""


class Health:
    """What the parts of one process say about themselves."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self._notes: dict[str, str] = {}  # every part that is known, with what there is to say of it when it is ready

    def ready(self, name: str, ok: bool, why: str = "") -> None:
        """The part `name` is ready, or is not because of `why`. Of a ready part `why` is a remark: "off: …"."""
        self._notes[name] = why if ok and why else "ok"
        if ok:
            self._waiting.pop(name, None)
        else:
            self._waiting[name] = why

    def alive(self, name: str, ok: bool, why: str = "") -> None:
        """The part `name` works, or has ended because of `why`."""
        if ok:
            self._broken.pop(name, None)
        else:
            self._broken[name] = why

    @property
    def broken(self) -> dict[str, str]:
        """Parts that have ended, and why."""
        return dict(self._broken)

    @property
    def waiting(self) -> dict[str, str]:
        """Parts that are not ready, and why."""
        return dict(self._waiting)

    def report(self) -> str:
        """One line per part, as /readyz shows it."""
        lines = [
            f"[{'-' if name in self._waiting else '+'}]{name} {self._waiting.get(name, note)}"
            for name, note in self._notes.items()
        ]
        return "\n".join(sorted(lines)) + "\n"


async def serve(health: Health, *, health_port: int, metrics_port: int, host: str = "0.0.0.0") -> list[web.AppRunner]:  # noqa: S104 - probes come from outside the pod
    """Serve the endpoints; a port of 0 leaves its endpoints out. The runners are to be cleaned up by the caller. Raises
    PortTaken."""

    async def healthz(_: web.Request) -> web.Response:
        broken = "".join(f"{name}: {why}\n" for name, why in sorted(health.broken.items()))
        return web.Response(text=broken or "ok\n", status=503 if broken else 200)

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text=health.report(), status=503 if health.waiting else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    disable_created_metrics()  # a series per series that no dashboard knows
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


async def listen(routes: Sequence[web.RouteDef], port: int, host: str = "0.0.0.0") -> web.AppRunner:  # noqa: S104 - as above
    """Serve the routes on a port. The runner is to be cleaned up by the caller. Raises PortTaken."""
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
