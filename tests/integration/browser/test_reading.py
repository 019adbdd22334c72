"""Every page is complete without scripts, and the same with them."""

import re

import pytest
from playwright.async_api import expect

from tests.integration.browser.pages import PAGES, Listed
from tests.integration.browser.visitor import Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHOUT_SLIDER = re.compile(r'<form class="slider".*?</form>')
"""A slider is a list to choose from where there are no scripts."""

EVERY = cases({name: (page,) for name, page in PAGES.items()})


@pytest.mark.parametrize("page", EVERY)
async def test_a_page_reads_without_scripts(scriptless: Visitor, page: Listed) -> None:
    await scriptless.open(page.path)
    await expect(scriptless.heading).not_to_be_empty()
    await expect(scriptless.main).to_contain_text(page.says)
    await expect(scriptless.page.get_by_role("navigation", name="Main").get_by_role("link").first).to_be_visible()


@pytest.mark.parametrize("page", EVERY)
async def test_scripts_render_what_the_server_rendered(reader: Visitor, page: Listed) -> None:
    """The first rendering of the scripts replaces nothing: the text of the page is that of its document."""
    answer = await reader.context.request.get(reader.site.url + page.path)
    await reader.open(page.path)
    await expect(reader.main).to_contain_text(page.says)
    served = await reader.page.evaluate(
        "html => new DOMParser().parseFromString(html, 'text/html').querySelector('main').textContent",
        WITHOUT_SLIDER.sub("", await answer.text()),
    )
    await reader.main.evaluate("main => main.querySelectorAll('.slider').forEach(one => one.remove())")
    await expect(reader.main).to_have_text(served)


async def test_search_and_sorting_work_without_scripts(scriptless: Visitor) -> None:
    user = scriptless
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
