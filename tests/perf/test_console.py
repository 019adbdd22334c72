"""The figures of the console with 30,000 pods in 2,000 CloneSets (docs/performance.md): played into real processes.

There is no control plane: `played/` is what watcher and console read. A viewer is a connection that shows the fleet.
What users wait for is measured in Chromium.
"""

import asyncio
import gzip
import json
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Page

from flotilla_console import web
from flotilla_dev.cluster.nats import ENVIRONMENT
from flotilla_dev.cluster.ports import free_ports
from tests.perf.limits import within
from tests.perf.played.population import Sizes
from tests.perf.played.stage import Stage, stage
from tests.support.chromium import running_chromium
from tests.support.fleet import memory_mib

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

SIZES = Sizes(sets=2000, pods_each=15, nodes=500)
GO_LIMIT = "400MiB"
"""The memory from which on nats-server collects garbage more often: docs/sizing.md advises more than the default."""

CHANGES, CHANGES_SECONDS = 200, 30
"""Changes of pods a second, and for how long."""

VIEWERS = 10
REQUESTS = 40
QUERIES = ("/?sort=name", "/?sort=-pods", "/?sort=-age", "/?q=set-1", "/?namespace=space-3", "/?q=set-19&sort=-name")
SETTLED_SECONDS = 5.0
TAB_SECONDS = 3600
"""Time for which a tab shows the fleet while pods change; its memory must not grow with it."""
TAB_CHANGES = 20

FIRST_ROWS = """
() => new Promise(done => new PerformanceObserver(list => {
  const found = list.getEntriesByName("first-contentful-paint");
  if (found.length) done(found[0].startTime);
}).observe({type: "paint", buffered: true}))
"""
"""Milliseconds from the navigation to the first rows, which are in the document."""

OBSERVE_TASKS = """
window.tasks = [];
new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(one => one.duration)))
  .observe({type: "longtask", buffered: true});
"""
"""Collects tasks of the page above 50 ms, which are those that browsers report."""

SHOWN = """
([kind, value]) => new Promise(done => {
  const main = document.getElementById("main"), started = performance.now(), before = main.textContent;
  const look = () => main.textContent === before
    ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done(performance.now() - started));
  if (kind === "sort") {
    [...main.querySelectorAll("th a")].find(one => one.textContent.trim().startsWith(value)).click();
  } else {
    const field = main.querySelector("input[type=search]");
    field.value = value;
    field.dispatchEvent(new Event("input", {bubbles: true}));
  }
  look();
})
"""
"""Sorts by a column or types into the search field; returns the milliseconds until the frame with other rows."""

INTERACTIONS = (
    ("sort", "Name"),
    ("search", "set-1"),
    ("sort", "Pods"),
    ("search", "set-19"),
    ("sort", "Name"),
    ("search", ""),
)
SCRIPTS = Path(web.__file__).parent / "static"


class Console:
    """The console beside the stand-in."""

    def __init__(self, played: Stage, port: int) -> None:
        self.played = played
        self.url = f"http://127.0.0.1:{port}"

    @property
    def memory(self) -> float:
        """Return the resident memory in MiB."""
        return self.played.memory()["console"]

    @property
    def cpu(self) -> float:
        """Return the CPU seconds so far."""
        return self.played.cpu()["console"]

    async def seconds(self, path: str) -> float:
        """Return the seconds until the whole page is there."""
        async with aiohttp.ClientSession() as session:
            started = time.monotonic()
            async with session.get(self.url + path) as answer:
                assert answer.status == 200, await answer.text()
                body = await answer.text()
            assert "set-" in body
            return time.monotonic() - started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def console(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Console]:
    port = free_ports(1)[0]
    flags = (
        f"--console-port={port}",
        "--console-listen=127.0.0.1",
        "--console-sign-in=fixed",
        "--console-fixed-user=viewer",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENVIRONMENT, "GOMEMLIMIT", GO_LIMIT)
        async with stage(tmp_path_factory.mktemp("console"), SIZES, ("watcher", "console"), flags) as played:
            await played.cold_start()
            await asyncio.sleep(SETTLED_SECONDS)
            yield Console(played, port)


async def view(console: Console, stack: AsyncExitStack) -> aiohttp.ClientResponse:
    """Open the stream of a viewer who looks at the fleet."""
    session = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)))
    stream = await stack.enter_async_context(session.get(f"{console.url}/live"))
    assert stream.status == 200
    hello = b""
    while b"event: hello" not in hello or not hello.endswith(b"\n\n"):
        hello += await stream.content.readline()
    data = next(line for line in hello.splitlines() if line.startswith(b"data: "))
    name = json.loads(data.removeprefix(b"data: "))["stream"]
    async with session.post(f"{console.url}/live/{name}/views", json={"paths": ["/"]}) as answer:
        assert answer.status == 204
    return stream


async def read(stream: aiohttp.ClientResponse) -> None:
    """Read a stream until cancelled."""
    async for _ in stream.content.iter_any():
        pass


async def stalls(console: Console, seconds: float) -> Sequence[float]:
    """Return how long a small request took, asked again and again: it waits for whatever holds the event loop."""
    found: list[float] = []
    async with aiohttp.ClientSession() as session:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            started = time.monotonic()
            async with session.get(f"{console.url}/robots.txt") as answer:
                await answer.read()
            found.append(time.monotonic() - started)
            await asyncio.sleep(0.02)
    return found


async def test_first_rows(console: Console) -> None:
    within("console_first_rows_seconds", statistics.median([await console.seconds("/") for _ in range(5)]))


async def test_sorting_and_filtering(console: Console) -> None:
    taken = sorted([await console.seconds(QUERIES[number % len(QUERIES)]) for number in range(REQUESTS)])
    within("console_query_p95_ms", taken[int(0.95 * len(taken))] * 1000)


async def test_viewers_while_pods_change(console: Console) -> None:
    async with AsyncExitStack() as stack:
        streams = [await view(console, stack) for _ in range(VIEWERS)]
        readers = [asyncio.create_task(read(stream)) for stream in streams]
        await asyncio.sleep(SETTLED_SECONDS)
        before, started = console.cpu, time.monotonic()
        await asyncio.sleep(CHANGES_SECONDS)
        quiet = (console.cpu - before) / (time.monotonic() - started)
        before, started = console.cpu, time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(console.played.play("change", CHANGES, CHANGES_SECONDS))
            waiting = group.create_task(stalls(console, CHANGES_SECONDS))
        changing = (console.cpu - before) / (time.monotonic() - started)
        print(f"\ncore: {quiet:.3f} quiet, {changing:.3f} while pods change; {console.memory:.0f} MiB", end="")
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    within("console_viewers_core", quiet)
    within("console_longest_task_ms", max(waiting.result()) * 1000)
    within("console_mib", console.memory)


@pytest_asyncio.fixture(loop_scope="module")
async def tab(console: Console) -> AsyncIterator[Page]:
    """Yield a page of Chromium."""
    async with running_chromium() as browser:
        page = await browser.new_page()
        await page.add_init_script(OBSERVE_TASKS)
        yield page


async def tab_mib(page: Page) -> float:
    """Return the private memory of the tab's process in MiB: without files and libraries that all tabs share."""
    assert page.context.browser is not None
    session = await page.context.browser.new_browser_cdp_session()
    found = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    await session.detach()
    return max(
        memory_mib(one["id"], "RssAnon") + memory_mib(one["id"], "RssShmem")
        for one in found
        if one["type"] == "renderer"
    )


async def test_first_rows_in_a_browser(console: Console, tab: Page) -> None:
    seconds: list[float] = []
    for _ in range(5):
        await tab.goto(console.url)
        seconds.append(await tab.evaluate(FIRST_ROWS) / 1000)
    within("console_first_paint_seconds", statistics.median(seconds))


async def test_sorting_and_filtering_in_a_browser(console: Console, tab: Page) -> None:
    await tab.goto(console.url)
    taken: list[float] = []
    while len(taken) < REQUESTS:
        taken += [await tab.evaluate(SHOWN, list(one)) for one in INTERACTIONS]
    within("console_interaction_p95_ms", sorted(taken)[int(0.95 * len(taken))])


async def test_tasks_of_a_page_while_pods_change(console: Console, tab: Page) -> None:
    await tab.goto(console.url)
    await asyncio.sleep(SETTLED_SECONDS)
    await tab.evaluate("window.tasks.length = 0")
    await console.played.play("change", CHANGES, CHANGES_SECONDS)
    tasks = await tab.evaluate("window.tasks")
    print(f"\n{len(tasks)} tasks above 50 ms", end="")
    within("console_page_task_ms", max(tasks, default=0.0))


@pytest.mark.timeout(TAB_SECONDS + 600)
async def test_a_tab_after_an_hour(console: Console, tab: Page) -> None:
    await tab.goto(console.url)
    await asyncio.sleep(SETTLED_SECONDS)
    first = await tab_mib(tab)
    await console.played.play("change", TAB_CHANGES, TAB_SECONDS)
    last = await tab_mib(tab)
    print(f"\ntab: {first:.0f} MiB after its start, {last:.0f} MiB in the end", end="")
    within("console_tab_mib", last)


async def test_size_of_the_scripts() -> None:
    scripts = [file for file in SCRIPTS.rglob("*") if file.suffix in {".js", ".mjs"}]
    assert scripts
    within("console_scripts_kib", sum(len(gzip.compress(file.read_bytes())) for file in scripts) / 1024)
