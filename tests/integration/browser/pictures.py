"""Pictures of the console for the documents: `python -m tests.integration.browser.pictures` writes them.

The clock of the site stands still and its objects are always the same, so the pictures change only with the console.
"""

import asyncio
import base64
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Page, expect

from tests.integration.browser.pages import PAGES
from tests.integration.browser.site.apiserver import ADMIN
from tests.integration.browser.site.scene import CRASHING, SHOP, WEB
from tests.integration.browser.site.site import Site, site
from tests.integration.browser.visitor import Scheme, visitor
from tests.support.chromium import running_chromium

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
WIDTH, HEIGHT = 1000, 640

MAX_BYTES = 150_000
"""Limit of a picture: the repository keeps every version of it."""

COMPARE = """
async ([one, other]) => {
  const pixels = async data => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return [image.width, image.height, context.getImageData(0, 0, image.width, image.height).data];
  };
  const [first, second] = [await pixels(one), await pixels(other)];
  if (first[0] !== second[0] || first[1] !== second[1]) return 1;
  let different = 0;
  for (let place = 0; place < first[2].length; place += 4) {
    const far = [0, 1, 2].some(part => Math.abs(first[2][place + part] - second[2][place + part]) > 48);
    different += far ? 1 : 0;
  }
  return different / (first[0] * first[1]);
}
"""


@dataclass(frozen=True)
class Picture:
    """A picture: the page that it shows, its colours, and a text that it waits for."""

    page: str
    scheme: Scheme
    path: str
    says: str

    @property
    def file(self) -> Path:
        """Return the file in the documents."""
        return FOLDER / f"console-{self.page}.png"


PICTURES = (
    Picture("fleet", "light", f"/?namespace={SHOP}", WEB),
    Picture("workload", "dark", PAGES["workload"].path, CRASHING),
    Picture("timeline", "light", PAGES["timeline"].path, CRASHING),
)


async def take(browser: Browser, console: Site, picture: Picture) -> bytes:
    """Return the picture as the console shows it now."""
    async with visitor(browser, console, ADMIN, scheme=picture.scheme) as user:
        await user.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        await user.open(picture.path)
        await expect(user.main).to_contain_text(picture.says)
        return await user.page.screenshot(animations="disabled", caret="hide", scale="css")


async def difference(blank: Page, one: bytes, other: bytes) -> float:
    """Return the share of pixels that differ visibly; 1 for pictures of different sizes."""
    return await blank.evaluate(COMPARE, [base64.b64encode(data).decode() for data in (one, other)])


async def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        async with running_chromium() as browser, site(Path(folder)) as console:
            for picture in PICTURES:
                picture.file.write_bytes(await take(browser, console, picture))
                print(picture.file)


if __name__ == "__main__":
    asyncio.run(main())
