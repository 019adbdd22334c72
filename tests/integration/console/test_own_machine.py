"""`flotilla console` as a user runs it: a URL for one session, their own rights, with and without a bus."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from flotilla_cli.local import bound_command
from tests.integration.browser.visitor import visitor
from tests.support.broker import environment
from tests.support.fleet import Fleet
from tests.support.scene import OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(300)]

PATIENCE = 60_000
ROOT = Path(__file__).parents[3]


class OwnConsole:
    """The site of a console that its user has started."""

    def __init__(self, url: str) -> None:
        """Split the printed URL."""
        parts = urlsplit(url)
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.key = f"{parts.path}?{parts.query}"


@contextmanager
def console(flotilla: Fleet, *arguments: str) -> Generator[OwnConsole]:
    """Run the command for the time of the block, and end it by Ctrl-C."""
    words = [sys.executable, "-m", "flotilla_cli", "console", "--no-browser", *arguments]
    words += ["--kubeconfig", str(flotilla.cluster.kubeconfig)]
    # A shell has its background jobs ignore Ctrl-C, and these tests may be part of one.
    command = bound_command(["env", "--default-signal=INT", *words])
    env = {**os.environ, **environment(flotilla.nats), "PYTHONPATH": str(ROOT)}
    with (
        TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            url = next((line.strip() for line in process.stdout if line.strip().startswith("http")), "")
            assert url, log.seek(0) or log.read()
            assert re.search(r"//127\.0\.0\.1:\d+/signin/key\?key=", url)
            yield OwnConsole(url)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def place(flotilla: Fleet) -> AsyncIterator[Scene[Fleet]]:
    async with scene(flotilla) as made:
        await made.create(cloneset("own", 2))
        await made.settle("own", OLD, 2)
        yield made


async def test_with_the_bus(place: Scene[Fleet], browser: Browser) -> None:
    with console(place.flotilla, "--nats", place.flotilla.nats.url) as site:
        async with visitor(browser, site, "") as user:
            await user.open(site.key)
            await expect(user.link("own")).to_be_visible(timeout=PATIENCE)
            await expect(user.banners).to_be_empty()
            await user.link("own").click()
            await user.link("Scale").click()
            await user.main.get_by_label("Replicas").fill("3")
            await user.main.get_by_role("button", name="Preview").click()
            await user.main.get_by_role("button", name="Scale", exact=True).click(timeout=PATIENCE)
            await expect(user.main).to_contain_text("scaled it to 3", timeout=PATIENCE)
            await place.settle("own", OLD, 3)
            assert await user.violations() == []
        async with visitor(browser, site, "") as thief:
            await thief.open(site.key)
            await expect(thief.page.locator("body")).to_contain_text("This key was used already")
            await thief.open()
            await expect(thief.link("own")).to_have_count(0)


async def test_without_a_bus(place: Scene[Fleet], browser: Browser) -> None:
    with console(place.flotilla) as site:
        async with visitor(browser, site, "") as user:
            await user.open(site.key)
            await expect(user.link("own")).to_be_visible(timeout=PATIENCE)
            await expect(user.banners).to_contain_text("reads the apiserver directly")
            await place.create(cloneset("later", 1))
            await expect(user.link("later")).to_be_visible(timeout=PATIENCE)
