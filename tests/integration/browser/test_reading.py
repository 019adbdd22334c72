"""Every page is complete without scripts, and the same with them."""

import re

import pytest
from playwright.async_api import expect

from tests.integration.browser.conftest import Visit
from tests.integration.browser.pages import PAGES, Listed
from tests.integration.browser.site.apiserver import ADMIN
from tests.integration.browser.visitor import Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHOUT_SLIDER = re.compile(r'<form class="slider".*?</form>')
"""A slider is a list to choose from where there are no scripts."""

EVERY = cases({name: (page,) for name, page in PAGES.items()})


@pytest.mark.parametrize("page", EVERY)
async def test_a_page_reads_without_scripts(visit: Visit, page: Listed) -> None:
    async with visit(ADMIN, scripts=False) as user:
        await user.open(page.path)
        await expect(user.heading).not_to_be_empty()
        await expect(user.main).to_contain_text(page.says)
        await expect(user.page.get_by_role("navigation", name="Main").get_by_role("link").first).to_be_visible()


@pytest.mark.parametrize("page", EVERY)
async def test_scripts_render_what_the_server_rendered(admin: Visitor, page: Listed) -> None:
    """The first rendering of the scripts replaces nothing: the text of the page is that of its document."""
    answer = await admin.context.request.get(admin.site.url + page.path)
    await admin.open(page.path)
    await expect(admin.main).to_contain_text(page.says)
    served = await admin.page.evaluate(
        "html => new DOMParser().parseFromString(html, 'text/html').querySelector('main').textContent",
        WITHOUT_SLIDER.sub("", await answer.text()),
    )
    await admin.main.evaluate("main => main.querySelectorAll('.slider').forEach(one => one.remove())")
    await expect(admin.main).to_have_text(served)


async def test_search_and_sorting_work_without_scripts(visit: Visit) -> None:
    async with visit(ADMIN, scripts=False) as user:
        await user.open()
        await user.page.get_by_role("search").get_by_role("searchbox").fill("ledger")
        await user.page.get_by_role("search").get_by_role("button").click()
        await expect(user.link("ledger")).to_be_visible()
        await expect(user.link("web")).to_have_count(0)
        await user.page.get_by_role("link", name="Name", exact=True).click()
        await expect(user.page.get_by_role("columnheader", name="Name", exact=True)).to_have_attribute(
            "aria-sort", "ascending"
        )
        await expect(user.link("ledger")).to_be_visible()
