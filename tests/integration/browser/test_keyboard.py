"""Everything can be done with the keyboard alone."""

import pytest
from playwright.async_api import Locator, expect

from tests.integration.browser.pages import PAGES, Listed
from tests.integration.browser.site.scene import WEB
from tests.integration.browser.visitor import Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

MOST_STOPS = 300
"""More stops than any page of the site has."""

REACHABLE = """
() => [...document.querySelectorAll(
  "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']",
)].filter(one => one.checkVisibility()).length
"""
STOP = """
() => {
  const one = document.activeElement;
  if (one === document.body || one === null) return null;
  const first = !one.dataset.visited;
  one.dataset.visited = "yes";
  const style = getComputedStyle(one);
  const marked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
  return [first, marked, one.outerHTML.slice(0, 120)];
}
"""


async def tab_to(user: Visitor, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    for _ in range(MOST_STOPS):
        if await target.evaluate("one => one === document.activeElement"):
            return
        await user.page.keyboard.press("Tab")
    raise AssertionError(f"{target} cannot be reached")


@pytest.mark.parametrize("page", cases({name: (page,) for name, page in PAGES.items()}))
async def test_every_control_is_a_stop_with_a_visible_mark(reader: Visitor, page: Listed) -> None:
    await reader.open(page.path)
    await expect(reader.main).to_contain_text(page.says)
    reachable, stops = await reader.page.evaluate(REACHABLE), 0
    for _ in range(MOST_STOPS):
        await reader.page.keyboard.press("Tab")
        stop = await reader.page.evaluate(STOP)
        if stop is None or not stop[0]:
            break
        assert stop[1], f"no visible focus: {stop[2]}"
        stops += 1
    assert stops == reachable


async def test_a_tour(admin: Visitor) -> None:
    keyboard = admin.page.keyboard
    await admin.open()
    await keyboard.press("Tab")
    await expect(admin.page.get_by_role("link", name="Skip to content")).to_be_focused()
    await keyboard.press("Enter")
    await expect(admin.main).to_be_focused()
    await tab_to(admin, admin.page.get_by_role("searchbox"))
    await keyboard.type(WEB)
    await keyboard.press("Enter")
    await expect(admin.link("ledger")).to_have_count(0)
    await tab_to(admin, admin.link(WEB).first)
    await keyboard.press("Enter")
    await expect(admin.heading).to_contain_text(WEB)
    await expect(admin.page).to_have_title(f"{await admin.heading.inner_text()} · Flotilla")
    folded = admin.page.locator("details").first
    await tab_to(admin, folded.locator("summary").first)
    was_open = await folded.evaluate("one => one.open")
    await keyboard.press("Space")
    assert await folded.evaluate("one => one.open") is not was_open
    await admin.page.go_back()
    await expect(admin.page.get_by_role("searchbox")).to_have_value(WEB)
