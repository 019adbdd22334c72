"""One Chromium and one console for all tests here; each test has a browser profile of its own."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.integration.browser.site.apiserver import ADMIN
from tests.integration.browser.site.site import Site, site
from tests.integration.browser.visitor import Visitor, visitor
from tests.support.chromium import FLAGS, chromium

Visit = Callable[..., AbstractAsyncContextManager[Visitor]]
"""Opens a browser of a user."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncGenerator[Browser]:
    program = chromium()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=program, args=[*FLAGS, "--disable-gpu"])
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def console(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with site(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture
def visit(browser: Browser, console: Site) -> Visit:
    return partial(visitor, browser, console)


@pytest_asyncio.fixture(loop_scope="session")
async def admin(visit: Visit) -> AsyncGenerator[Visitor]:
    """Yield somebody who may see everything. Nothing may go wrong in their browser."""
    async with visit(ADMIN) as made:
        yield made
        assert await made.violations() == []
