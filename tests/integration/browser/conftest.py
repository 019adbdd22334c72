"""One Chromium and one console for all tests here.

Tests that only read pages share a browser profile and its only tab: another process for each would be most of their
time. A test that leaves something behind has a profile of its own (`visit`, `admin`).
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.integration.browser.site.apiserver import ADMIN, SHOPKEEPER
from tests.integration.browser.site.site import Site, site
from tests.integration.browser.visitor import HEIGHT, WIDE, Visitor, visitor
from tests.support.chromium import running_chromium

Visit = Callable[..., AbstractAsyncContextManager[Visitor]]
"""Opens a browser of a user."""


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def browser() -> AsyncGenerator[Browser]:
    async with running_chromium() as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def console(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with site(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture
def visit(browser: Browser, console: Site) -> Visit:
    return partial(visitor, browser, console)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def shared_reader(browser: Browser, console: Site) -> AsyncGenerator[Visitor]:
    async with visitor(browser, console, ADMIN) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def reader(shared_reader: Visitor) -> AsyncGenerator[Visitor]:
    """Yield somebody who may see everything, and only reads. Nothing may go wrong in their browser."""
    shared_reader.troubles.clear()
    await shared_reader.page.set_viewport_size({"width": WIDE, "height": HEIGHT})
    await shared_reader.page.emulate_media(color_scheme="light")
    yield shared_reader
    assert await shared_reader.violations() == []
    await shared_reader.page.goto("about:blank")  # other tests count the open streams


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def scriptless(browser: Browser, console: Site) -> AsyncGenerator[Visitor]:
    """Yield somebody who may see everything, in a browser without scripts."""
    async with visitor(browser, console, ADMIN, scripts=False) as made:
        yield made


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def shopkeeper(browser: Browser, console: Site) -> AsyncGenerator[Visitor]:
    """Yield somebody who may see one namespace."""
    async with visitor(browser, console, SHOPKEEPER) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def admin(visit: Visit) -> AsyncGenerator[Visitor]:
    """Yield somebody who may see everything. Nothing may go wrong in their browser."""
    async with visit(ADMIN) as made:
        yield made
        assert await made.violations() == []
