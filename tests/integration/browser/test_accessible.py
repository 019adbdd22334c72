"""axe finds nothing grave on any page, in both colour schemes, narrow and wide."""

import pytest
from playwright.async_api import expect

from tests.integration.browser import axe
from tests.integration.browser.pages import PAGES, Listed
from tests.integration.browser.visitor import HEIGHT, NARROW, WIDE, Scheme, Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOKS: tuple[tuple[Scheme, int], ...] = (("light", NARROW), ("dark", WIDE), ("dark", NARROW))


@pytest.mark.parametrize("page", cases({name: (page,) for name, page in PAGES.items()}))
async def test_a_page_has_no_grave_finding(admin: Visitor, page: Listed) -> None:
    await admin.open(page.path)
    await expect(admin.main).to_contain_text(page.says)
    await axe.load(admin.page)
    found = {("light", WIDE): await axe.findings(admin.page)}
    for scheme, width in LOOKS:
        await admin.page.emulate_media(color_scheme=scheme)
        await admin.page.set_viewport_size({"width": width, "height": HEIGHT})
        found[scheme, width] = await axe.findings(admin.page, axe.OF_LOOK)
    assert not any(found.values()), found


@pytest.mark.parametrize("page", cases({name: (page,) for name, page in PAGES.items()}))
async def test_a_narrow_page_does_not_scroll_sideways(admin: Visitor, page: Listed) -> None:
    await admin.page.set_viewport_size({"width": NARROW, "height": HEIGHT})
    await admin.open(page.path)
    assert await admin.page.evaluate("document.scrollingElement.scrollWidth") <= NARROW


async def test_axe_finds_what_is_wrong(admin: Visitor) -> None:
    """The check itself can fail."""
    await admin.open()
    await axe.load(admin.page)
    await admin.main.evaluate("main => { main.querySelectorAll('label').forEach(one => one.remove()); }")
    assert [one[1] for one in await axe.findings(admin.page)]
