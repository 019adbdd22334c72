"""The pictures in the documents show the console as it is."""

import pytest
from playwright.async_api import Browser

from tests.integration.browser.pictures import MAX_BYTES, PICTURES, Picture, difference, take
from tests.integration.browser.site.site import Site
from tests.testkit.tables import cases

pytestmark = pytest.mark.asyncio(loop_scope="session")

TOLERANCE = 0.02
"""Share of pixels that may differ: releases of Chromium and of the font draw letters differently."""


@pytest.mark.parametrize("picture", cases({one.page: (one,) for one in PICTURES}))
async def test_a_picture_shows_the_page(browser: Browser, console: Site, picture: Picture) -> None:
    kept = picture.file.read_bytes()
    assert len(kept) <= MAX_BYTES
    blank = await browser.new_page()
    try:
        taken = await take(browser, console, picture)
        share = await difference(blank, kept, taken)
        assert share <= TOLERANCE, f"{share:.1%} differ: python -m tests.integration.browser.pictures draws it again"
    finally:
        await blank.close()


async def test_different_pages_differ(browser: Browser, console: Site) -> None:
    """The comparison itself can fail."""
    blank = await browser.new_page()
    first, second = [await take(browser, console, one) for one in PICTURES[:2]]
    assert await difference(blank, first, second) > TOLERANCE
    await blank.close()
