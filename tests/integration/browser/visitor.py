"""A user with a browser of their own: what they see, and what went wrong in it."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal, Protocol

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Locator, Page, expect

from tests.integration.browser.site.front import WHO

Scheme = Literal["light", "dark"]

WIDE, NARROW = 1280, 320
HEIGHT = 900

VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", one => {
  window.violations.push(`${one.violatedDirective} ${one.blockedURI}`);
});
"""

EXPECTED = re.compile(r"Failed to load resource: (net::ERR_|the server responded with a status of)")
"""Browsers note failed requests in the console, which tests provoke."""


class Served(Protocol):
    """A console at an address."""

    url: str


class Visitor:
    """A user's browser: a context of Chromium, with one page or several."""

    def __init__(self, site: Served, context: BrowserContext, page: Page) -> None:
        self.site, self.context, self.page = site, context, page
        self.troubles: list[str] = []
        """Dialogs, errors of scripts, and violations of the Content-Security-Policy."""
        self._watch(page)

    def _watch(self, page: Page) -> None:
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", self._console)

    async def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not EXPECTED.match(message.text):
            self.troubles.append(f"console: {message.text}")

    async def open(self, path: str = "/") -> None:
        """Go to a page of the console."""
        await self.page.goto(self.site.url + path)

    async def tab(self, path: str = "/") -> Page:
        """Open another tab."""
        page = await self.context.new_page()
        self._watch(page)
        await page.goto(self.site.url + path)
        return page

    async def shows(self, title: str) -> None:
        """Wait until the page has this title."""
        await expect(self.heading).to_have_text(title)

    async def violations(self) -> list[str]:
        """Return everything that went wrong in the open page."""
        return [*self.troubles, *await self.page.evaluate("window.violations ?? []")]

    @property
    def heading(self) -> Locator:
        """The title of the page."""
        return self.page.get_by_role("heading", level=1)

    @property
    def main(self) -> Locator:
        """The content of the page."""
        return self.page.get_by_role("main")

    @property
    def banners(self) -> Locator:
        """The place of messages about what is shown."""
        return self.page.locator("#banners")

    def table(self, caption: str) -> Locator:
        """Return the table with this caption."""
        return self.page.get_by_role("table", name=re.compile(rf"^{re.escape(caption)}"))

    def count(self, caption: str) -> Locator:
        """Return the number of rows in the caption of this table."""
        return self.page.locator("caption").filter(has_text=re.compile(rf"^{re.escape(caption)}")).locator(".count")

    def row(self, name: str) -> Locator:
        """Return the rows that contain a link of this name."""
        return self.page.get_by_role("row").filter(has=self.page.get_by_role("link", name=name, exact=True))

    def link(self, name: str) -> Locator:
        """Return the links of this name in the content."""
        return self.main.get_by_role("link", name=name, exact=True)


@asynccontextmanager
async def visitor(
    browser: Browser,
    site: Served,
    user: str,
    *,
    scripts: bool = True,
    scheme: Scheme = "light",
    width: int = WIDE,
) -> AsyncGenerator[Visitor]:
    """Open a browser for the time of the block, in which the user is signed in; nobody is if `user` is empty."""
    context = await browser.new_context(
        java_script_enabled=scripts,
        color_scheme=scheme,
        reduced_motion="reduce",
        viewport={"width": width, "height": HEIGHT},
        ignore_https_errors=True,  # of certificates that a test has made
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(5000)
    try:
        if user:
            await context.add_cookies([{"name": WHO, "value": user, "url": site.url}])
        await context.add_init_script(VIOLATIONS)
        yield Visitor(site, context, await context.new_page())
    finally:
        await context.close()
