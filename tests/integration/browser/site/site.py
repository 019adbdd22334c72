"""The console in the test's own process, on a bus in memory, behind a proxy that signs users in."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from flotilla_common.bus.interface import Bus
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.health import Health
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from flotilla_console import app
from flotilla_dev.cluster.ports import free_ports, listens
from tests.integration.browser.site.front import Front, front
from tests.integration.browser.site.scene import fill
from tests.integration.browser.site.world import World

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
HOST = "127.0.0.1"
SECRET = "a-secret-of-the-proxy"
START_SECONDS = 20


class StillClock(SystemClock):
    """A clock whose wall time does not pass, so that ages on pages and pictures are always the same."""

    def now(self) -> datetime:
        return NOW


class Site:
    """The console, what it reads, and the proxy in front of it."""

    def __init__(self, folder: Path, world: World, proxy: Front, port: int, own: int) -> None:
        self.world = world
        self.proxy = proxy
        self.url = f"http://{HOST}:{port}"
        secret, key = folder / "proxy-secret", folder / "cookie-key"
        secret.write_text(SECRET, encoding="utf-8")
        key.write_bytes(urlsafe_b64encode(bytes(range(32))))
        self._settings = Settings(
            console_listen=HOST,
            console_port=own,
            console_sign_in="proxy",
            console_proxy_secret_file=str(secret),
            console_cookie_key_file=str(key),
        )
        self._own = own
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the console, and wait until it is ready."""
        context = Context(
            service=app.NAME,
            settings=self._settings,
            gates=self._settings.gates(),
            api=self.world.api.api,
            bus=cast("Bus", self.world.bus),
            clock=StillClock(),
            entropy=SystemEntropy(),
            health=Health(),
            replica="console-0",
        )
        running = self._running = asyncio.create_task(app.run(context))
        async with asyncio.timeout(START_SECONDS):
            while not await listens(HOST, self._own):
                if running.done():
                    running.result()
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """End the console at once."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None


@asynccontextmanager
async def site(folder: Path) -> AsyncGenerator[Site]:
    """Run the site for the time of the block."""
    own, port = free_ports(2)
    world = World(StillClock())
    await fill(world, NOW)
    living = asyncio.create_task(world.live())
    async with front(port, f"http://{HOST}:{own}", SECRET) as proxy:
        made = Site(folder, world, proxy, port, own)
        try:
            await made.start()
            yield made
        finally:
            await made.kill()
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
