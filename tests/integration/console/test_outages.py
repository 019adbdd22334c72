"""Processes killed while a page is open: a banner says so, and goes when all is well again."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.integration.browser.visitor import Visitor
from tests.integration.console.conftest import Visit
from tests.integration.console.site import Site
from tests.support.fleet import Fleet
from tests.support.scene import OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(300)]

WEB = "web"
PATIENCE = 60_000
"""Milliseconds until a page says what has happened: a watcher is missed after three heartbeats."""


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def place(flotilla: Fleet, console: Site) -> AsyncIterator[Scene[Fleet]]:
    console.admit_everywhere("keeper")
    async with scene(flotilla) as made:
        await made.create(cloneset(WEB, 2))
        await made.settle(WEB, OLD, 2)
        yield made


@pytest_asyncio.fixture(loop_scope="package")
async def user(visit: Visit, place: Scene[Fleet]) -> AsyncIterator[Visitor]:
    """Yield a user who looks at the namespace all the time."""
    async with visit("keeper") as made:
        await made.open(f"/?namespace={place.namespace}")
        await expect(made.link(WEB)).to_be_visible(timeout=PATIENCE)
        await expect(made.banners).to_be_empty(timeout=PATIENCE)
        await made.page.evaluate("window.mark = 'first'")
        yield made
        assert await made.page.evaluate("window.mark") == "first", "the page was loaded again"


async def shows_news(user: Visitor, place: Scene[Fleet], name: str) -> None:
    """Check that an open page shows a new CloneSet."""
    await place.create(cloneset(name, 1))
    await expect(user.link(name)).to_be_visible(timeout=PATIENCE)


async def test_the_watcher(user: Visitor, place: Scene[Fleet]) -> None:
    """Meanwhile the console reads the apiserver directly."""
    place.flotilla.kill("watcher")
    await expect(user.banners).to_contain_text("No watcher is alive", timeout=PATIENCE)
    await shows_news(user, place, "without-watcher")
    await place.flotilla.start("watcher")
    await expect(user.banners).to_be_empty(timeout=PATIENCE)
    await shows_news(user, place, "after-watcher")


async def test_the_bus(user: Visitor, place: Scene[Fleet]) -> None:
    await place.flotilla.kill_bus()
    await expect(user.banners).to_contain_text("The bus does not answer", timeout=PATIENCE)
    await place.flotilla.start_bus()
    await expect(user.banners).to_be_empty(timeout=PATIENCE)
    await shows_news(user, place, "after-bus")


async def test_the_console(user: Visitor, place: Scene[Fleet], console: Site) -> None:
    place.flotilla.kill("console")
    await expect(user.banners).to_contain_text("Disconnected", timeout=PATIENCE)
    await console.start()
    await expect(user.banners).to_be_empty(timeout=PATIENCE)
    await shows_news(user, place, "after-console")


async def test_a_console_that_hangs(user: Visitor, place: Scene[Fleet]) -> None:
    """Its connections stay open, and nothing comes."""
    place.flotilla.pause("console")
    await expect(user.banners).to_contain_text("Disconnected", timeout=PATIENCE)
    place.flotilla.resume("console")
    await expect(user.banners).to_be_empty(timeout=PATIENCE)
    await shows_news(user, place, "after-pause")


async def test_the_session(user: Visitor, console: Site) -> None:
    """Check that nothing that the user may no longer see stays on the screen."""
    await console.proxy.end_sessions()
    await expect(user.banners).to_contain_text("Sign", timeout=PATIENCE)
    await expect(user.link(WEB)).to_have_count(0)
    console.proxy.sessions_ended = False
