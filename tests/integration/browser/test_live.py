"""Pages change without being loaded again, and say so when they cannot."""

import copy
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Reason, State
from tests.integration.browser.conftest import Visit
from tests.integration.browser.pages import PAGES, workload
from tests.integration.browser.site.apiserver import ADMIN
from tests.integration.browser.site.scene import BANK, LEDGER, SHOP, WEB, scene
from tests.integration.browser.site.site import NOW, Site
from tests.integration.browser.visitor import Visitor
from tests.support.cluster import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOON = 1000
"""Milliseconds from an event to the page: the figure of the design."""

PATIENCE = 15_000
"""Milliseconds until a browser has noticed that the console is away, or back."""

TABS = 8


@pytest_asyncio.fixture(loop_scope="session")
async def restored(console: Site) -> AsyncGenerator[Site]:
    """Yield the site, and repair it afterwards."""
    yield console
    console.world.alive = console.world.bus.connected = True
    console.proxy.sessions_ended = False
    await console.kill()
    await console.start()


async def stays_open(user: Visitor) -> None:
    """Mark the document: a page that is loaded again has no mark."""
    await user.page.evaluate("window.mark = 'first'")


async def was_not_loaded_again(user: Visitor) -> bool:
    return await user.page.evaluate("window.mark") == "first"


async def connected(site: Site, streams: int = 1) -> None:
    """Wait until so many streams are open at the console."""
    try:
        await eventually(lambda: site.proxy.streams == streams, PATIENCE / 1000)
    except TimeoutError:
        raise AssertionError(f"{site.proxy.streams} streams are open, not {streams}") from None


async def test_a_changed_pod_appears_within_a_second(admin: Visitor, console: Site) -> None:
    await admin.open(workload(BANK, LEDGER))
    await expect(admin.heading).to_contain_text(LEDGER)
    await connected(console)
    await stays_open(admin)
    pods = [one for one in scene(NOW).objects[POD] if one["metadata"]["name"] == f"{LEDGER}-0"]
    changed = copy.deepcopy(pods[0])
    changed["metadata"] |= {"name": f"{LEDGER}-new", "uid": "u-new"}
    await console.world.put(POD, changed)
    await expect(admin.main).to_contain_text(f"{LEDGER}-new", timeout=SOON)
    await console.world.remove(POD, changed)
    await expect(admin.main).not_to_contain_text(f"{LEDGER}-new", timeout=SOON)
    assert await was_not_loaded_again(admin)


async def test_a_new_reason_appears_within_a_second(admin: Visitor, console: Site) -> None:
    await admin.open()
    await expect(admin.link(LEDGER)).to_be_visible()
    await connected(console)
    ledger = scene(NOW).of(CLONE_SET, LEDGER)
    await console.world.explain(CLONE_SET, ledger, Reason(State.HELD, "Held", "kept by a hook of the bank"))
    await expect(admin.main).to_contain_text("kept by a hook of the bank", timeout=SOON)
    await console.world.explain(CLONE_SET, ledger)
    await expect(admin.main).not_to_contain_text("kept by a hook of the bank", timeout=SOON)


async def test_a_change_keeps_the_focus(admin: Visitor, console: Site) -> None:
    await admin.open()
    await connected(console)
    await admin.page.get_by_role("searchbox").fill("led")
    ledger = scene(NOW).of(CLONE_SET, LEDGER)
    await console.world.explain(CLONE_SET, ledger, Reason(State.STUCK, "Other", "another cause"))
    await expect(admin.main).to_contain_text("another cause", timeout=SOON)
    await expect(admin.page.get_by_role("searchbox")).to_be_focused()
    await expect(admin.page.get_by_role("searchbox")).to_have_value("led")
    await console.world.explain(CLONE_SET, ledger)


async def test_tabs_of_a_browser_share_one_stream(admin: Visitor, console: Site) -> None:
    await admin.open()
    tabs = [await admin.tab(page.path) for page in (PAGES["fleet"], PAGES["workload"]) for _ in range(TABS // 2)][1:]
    await connected(console)
    ledger = scene(NOW).of(CLONE_SET, LEDGER)
    await console.world.explain(CLONE_SET, ledger, Reason(State.HELD, "Held", "shown in every tab"))
    for tab in [admin.page, *tabs]:
        if tab.url.endswith("/"):
            await expect(tab.get_by_role("main")).to_contain_text("shown in every tab", timeout=SOON)
    assert console.proxy.streams == 1
    await console.world.explain(CLONE_SET, ledger)


async def test_without_shared_workers_each_tab_has_its_own_stream(visit: Visit, console: Site) -> None:
    async with visit(ADMIN) as user:
        await user.context.add_init_script("delete globalThis.SharedWorker")
        await user.open()
        other = await user.tab()
        await connected(console, streams=2)
        ledger = scene(NOW).of(CLONE_SET, LEDGER)
        await console.world.explain(CLONE_SET, ledger, Reason(State.HELD, "Held", "shown in both tabs"))
        for tab in (user.page, other):
            await expect(tab.get_by_role("main")).to_contain_text("shown in both tabs", timeout=SOON)
        await console.world.explain(CLONE_SET, ledger)


async def test_a_restarted_console_is_a_banner_for_a_while(visit: Visit, restored: Site) -> None:
    async with visit(ADMIN) as user:
        await user.open()
        await connected(restored)
        await stays_open(user)
        await restored.kill()
        await expect(user.banners).not_to_be_empty(timeout=PATIENCE)
        await restored.start()
        await expect(user.banners).to_be_empty(timeout=PATIENCE)
        ledger = scene(NOW).of(CLONE_SET, LEDGER)
        await restored.world.explain(CLONE_SET, ledger, Reason(State.HELD, "Held", "after the restart"))
        await expect(user.main).to_contain_text("after the restart", timeout=SOON)
        await restored.world.explain(CLONE_SET, ledger)
        assert await was_not_loaded_again(user)


async def test_an_ended_session_is_a_link_to_sign_in(visit: Visit, restored: Site) -> None:
    async with visit(ADMIN) as user:
        await user.open(workload(SHOP, WEB))
        await connected(restored)
        await restored.proxy.end_sessions()
        await expect(user.banners).to_contain_text("ign", timeout=PATIENCE)
        await expect(user.heading).to_contain_text(WEB)


async def test_a_dead_bus_is_a_banner(visit: Visit, restored: Site) -> None:
    async with visit(ADMIN) as user:
        await user.open()
        await connected(restored)
        restored.world.bus.connected = False
        await expect(user.banners).to_contain_text("bus does not answer", timeout=PATIENCE)
        restored.world.bus.connected = True
        await expect(user.banners).to_be_empty(timeout=PATIENCE)
