"""Checks pages for accessibility by axe-core, as it comes in the package axe-playwright-python."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from playwright.async_api import Page

GRAVE = ("serious", "critical")
"""Weights of findings that no page may have."""

OF_LOOK = ("color-contrast", "target-size", "scrollable-region-focusable", "meta-viewport", "link-in-text-block")
"""Rules whose result depends on width and colours; that of all others is the same for one document."""

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")

RUN = """
async ([rules, tags]) => {
  const runOnly = rules.length ? {type: "rule", values: rules} : {type: "tag", values: tags};
  const found = await axe.run(document, {runOnly, resultTypes: ["violations"], preload: false});
  return found.violations.map(one => [one.impact, one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]);
}
"""


@cache
def _script() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


async def load(page: Page) -> None:
    """Put axe into an open page."""
    await page.evaluate(_script())


async def findings(page: Page, rules: Sequence[str] = ()) -> list[Any]:
    """Return the grave findings of these rules, or of all, as weight, rule and examples."""
    found = await page.evaluate(RUN, [list(rules), list(TAGS)])
    return [one for one in found if one[0] in GRAVE]
