"""One control plane with services and a console for this folder, and one Chromium.

The files that only need an apiserver or a bus do not use it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from flotilla_dev.cluster.kwok import Kubelet
from tests.integration.browser.visitor import Visitor, visitor
from tests.integration.console.site import Site, site
from tests.support.chromium import running_chromium
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet

Visit = Callable[..., AbstractAsyncContextManager[Visitor]]
"""Opens a browser of a user."""


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    folder = tmp_path_factory.mktemp("plane")
    plane = control_plane(folder, kubelet=Kubelet(start=50, restart=50))
    async with plane as cluster, fleet(cluster, SERVICES) as made:
        yield made


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def console(flotilla: Fleet, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with site(flotilla, tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with running_chromium() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, console: Site) -> Visit:
    return partial(visitor, browser, console)
