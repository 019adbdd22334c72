"""The time from a change at the apiserver to the pixel, through watcher, bus, console and Chromium.

See docs/performance.md.
"""

import asyncio
import time
from pathlib import Path

import pytest
from playwright.async_api import expect

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_console import paths
from tests.integration.browser.visitor import visitor
from tests.integration.console.site import site
from tests.perf.limits import within
from tests.support.chromium import running_chromium
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, fleet
from tests.support.scene import OLD, cloneset, scene

CHANGES = 100
PAUSE = 0.37
"""Seconds between two changes, no multiple of the time between two renderings."""

APPEARS = """
text => new Promise(done => {
  const main = document.getElementById("main");
  const look = () => main.textContent.includes(text)
    ? requestAnimationFrame(() => done(Date.now() / 1000))
    : requestAnimationFrame(look);
  look();
})
"""


@pytest.mark.asyncio
@pytest.mark.timeout(600)
async def test_from_the_apiserver_to_the_pixel(tmp_path: Path) -> None:
    async with (
        control_plane(tmp_path) as cluster,
        fleet(cluster, SERVICES) as flotilla,
        site(flotilla, tmp_path) as console,
        scene(flotilla) as place,
        running_chromium() as browser,
    ):
        console.admit_everywhere("viewer")
        await place.create(cloneset("web", 10))
        await place.settle("web", OLD, 10)
        taken: list[float] = []
        async with visitor(browser, console, "viewer") as user:
            await user.open(paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, "web"))
            await expect(user.heading).to_contain_text("web")
            for number in range(CHANGES):
                shown = asyncio.create_task(user.page.evaluate(APPEARS, f"number={number}."))
                label = {"metadata": {"labels": {"number": f"{number}.x"}}}
                await asyncio.to_thread(cluster.api_objects.within(place.namespace).patch, "clone", "web", label)
                answered = time.time()
                taken.append(await shown - answered)
                await asyncio.sleep(PAUSE)
        within("console_pixel_p95_ms", sorted(taken)[int(0.95 * CHANGES)] * 1000)
