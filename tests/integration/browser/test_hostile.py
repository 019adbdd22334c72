"""Texts of attackers stay texts, and other sites can neither frame the console nor use it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import expect

from flotilla_dev.cluster.ports import free_ports
from tests.integration.browser.conftest import Visit
from tests.integration.browser.pages import EVIL_PAGES, workload
from tests.integration.browser.site.apiserver import ADMIN
from tests.integration.browser.site.scene import EVIL, LAIR, SHOP, WEB
from tests.integration.browser.site.site import Site
from tests.integration.browser.visitor import Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOREIGN = """
() => [
  ...document.querySelectorAll("img, iframe, object, embed, svg[onload], [onerror], [onclick], [onload], style"),
  ...[...document.querySelectorAll("script")].filter(one => !one.src.startsWith(location.origin) && one.id !== "shown"),
  ...[...document.querySelectorAll("a, form")].filter(one => !(one.href ?? one.action).startsWith(location.origin)),
].map(one => one.outerHTML.slice(0, 200))
"""
"""Elements that no page of the console has."""


@pytest.mark.parametrize("path", cases({name: (path,) for name, path in EVIL_PAGES.items()}))
async def test_texts_of_attackers_stay_texts(reader: Visitor, path: str) -> None:
    await reader.open(path)
    await expect(reader.heading).not_to_be_empty()
    await reader.page.evaluate("() => new Promise(done => setTimeout(done, 100))")  # an error of an image comes later
    assert await reader.page.evaluate(FOREIGN) == []


async def test_a_hostile_name_leads_to_its_own_page(reader: Visitor) -> None:
    await reader.open("/?namespace=" + LAIR)
    await reader.link(EVIL).first.click()
    await expect(reader.heading).to_contain_text(EVIL)


async def test_a_text_in_the_policy_is_counted(visit: Visit) -> None:
    """The check itself can fail: an inline script is refused by the browser, and counted."""
    async with visit(ADMIN) as user:
        await user.open()
        await user.page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {textContent: 'alert(1)'}))"
        )
        assert any("script-src" in one for one in await user.violations())
        assert not any("dialog" in one for one in user.troubles)


@asynccontextmanager
async def attacker(body: str) -> AsyncGenerator[str]:
    """Serve a page of another site for the time of the block, and yield its URL."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=f"<!doctype html><title>prize</title>{body}", content_type="text/html")

    application, port = web.Application(), free_ports(1)[0]
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://localhost:{port}/"
    finally:
        await runner.cleanup()


async def test_no_other_site_can_frame_the_console(visit: Visit) -> None:
    async with visit(ADMIN) as user, attacker(f"<iframe src='{user.site.url}/'></iframe>") as trap:
        await user.page.goto(trap)
        frame = user.page.frames[-1]
        await expect(user.page.locator("iframe")).to_be_visible()
        assert await frame.locator("main").count() == 0
        answer = await user.context.request.get(user.site.url)
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_no_other_site_can_act(visit: Visit, console: Site) -> None:
    action = f"{{url}}{workload(SHOP, WEB, 'action', 'pause')}"
    async with visit(ADMIN) as user:
        target = action.format(url=user.site.url)
        form = f"<form method=post action='{target}'><input name=confirm value=true><button>Win</button></form>"
        async with attacker(form) as trap:
            writes = len(console.world.api.writes)
            await user.page.goto(trap)
            async with user.page.expect_navigation() as navigation:
                await user.page.get_by_role("button").click()
            answer = await navigation.value
            assert answer is not None
            assert answer.status in (401, 403), await answer.text()
            assert len(console.world.api.writes) == writes


async def test_a_form_without_its_token_is_refused(visit: Visit) -> None:
    """A request of our own origin, as a hostile text could send it, does not have the token."""
    async with visit(ADMIN) as user:
        await user.open()
        answer = await user.page.evaluate(
            "async path => (await fetch(path, {method: 'POST', body: new URLSearchParams({confirm: 'true'})})).status",
            workload(SHOP, WEB, "action", "pause"),
        )
        assert answer == 403
