"""axe finds nothing grave on any page, in both colour schemes, narrow and wide."""

import pytest
from playwright.async_api import expect

from tests.integration.browser import axe
from tests.integration.browser.pages import PAGES, Listed
from tests.integration.browser.visitor import HEIGHT, NARROW, WIDE, Scheme, Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

OVERFLOWS = "document.scrollingElement.scrollWidth"

LOOKS: tuple[tuple[Scheme, int], ...] = (("light", NARROW), ("dark", WIDE), ("dark", NARROW))


@pytest.mark.parametrize("page", cases({name: (page,) for name, page in PAGES.items()}))
async def test_a_page_has_no_grave_finding_and_does_not_scroll_sideways(reader: Visitor, page: Listed) -> None:
    await reader.open(page.path)
    await expect(reader.main).to_contain_text(page.says)
    await axe.load(reader.page)
    found = {("light", WIDE): await axe.findings(reader.page)}
    for scheme, width in LOOKS:
        await reader.page.emulate_media(color_scheme=scheme)
        await reader.page.set_viewport_size({"width": width, "height": HEIGHT})
        assert await reader.page.evaluate(OVERFLOWS) <= width
        found[scheme, width] = await axe.findings(reader.page, axe.OF_LOOK)
    assert not any(found.values()), found


async def test_axe_finds_what_is_wrong(admin: Visitor) -> None:
    """The check itself can fail."""
    await admin.open()
    await axe.load(admin.page)
    await admin.main.evaluate("main => { main.querySelectorAll('label').forEach(one => one.remove()); }")
    assert [one[1] for one in await axe.findings(admin.page)]
