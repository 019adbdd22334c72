"""A user sees what they may list, and no trace of anything else."""

import re

import pytest
from playwright.async_api import expect

from tests.integration.browser.conftest import Visit
from tests.integration.browser.pages import PAGES, workload
from tests.integration.browser.site.apiserver import ADMIN, NOBODY, SHOPKEEPER
from tests.integration.browser.site.scene import BANK, EVIL, LAIR, LEDGER
from tests.integration.browser.visitor import Visitor
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOREIGN = re.compile(rf"\b({BANK}|{LAIR}|{LEDGER}|vault|guard|evil)\b")
"""Names of objects in which a shopkeeper has no rights."""


@pytest.mark.parametrize("path", cases({name: (page.path,) for name, page in PAGES.items()}))
async def test_no_page_names_what_may_not_be_seen(shopkeeper: Visitor, path: str) -> None:
    answer = await shopkeeper.context.request.get(shopkeeper.site.url + path)
    assert FOREIGN.findall(await answer.text()) == []


async def test_rows_counts_and_search_have_the_own_namespace_only(visit: Visit) -> None:
    async with visit(SHOPKEEPER) as user, visit(ADMIN) as admin:
        await user.open()
        await admin.open()
        await expect(user.link("web").first).to_be_visible()
        own = await user.page.get_by_role("row").count()
        assert own < await admin.page.get_by_role("row").count()
        assert await user.count("Workloads").inner_text() != await admin.count("Workloads").inner_text()
        await user.page.get_by_role("searchbox").fill(LEDGER)
        await user.page.keyboard.press("Enter")
        await expect(user.count("Workloads")).to_have_text("0")
        await expect(user.link(LEDGER)).to_have_count(0)


@pytest.mark.parametrize(
    "path",
    cases(
        {
            "workload": (workload(BANK, LEDGER),),
            "timeline": (workload(BANK, LEDGER, "timeline"),),
            "action": (workload(BANK, LEDGER, "action", "pause"),),
            "hostile": (workload(LAIR, EVIL),),
            "pod": (f"/pods/{BANK}/{LEDGER}-0",),
        }
    ),
)
async def test_what_may_not_be_seen_does_not_exist(shopkeeper: Visitor, path: str) -> None:
    get, url = shopkeeper.context.request.get, shopkeeper.site.url
    hidden, missing = await get(url + path), await get(url + path.replace(LEDGER, "nothing").replace(BANK, "none"))
    assert (hidden.status, missing.status) == (404, 404)


async def test_a_change_of_what_may_not_be_seen_reaches_nobody(visit: Visit) -> None:
    async with visit(NOBODY) as user:
        await user.open()
        await expect(user.heading).not_to_be_empty()
        await expect(user.main).not_to_contain_text(re.compile("web|ledger"))
