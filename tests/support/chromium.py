"""Gets and runs Debian's Chromium, which the tests of the console use.

python -m tests.support.chromium
"""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from flotilla_cli.local import ClusterError
from flotilla_dev.cluster.realnodes import debian

FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def font() -> Path | None:
    """Return the font of pages and pictures: without any, each text is a row of boxes."""
    return FONT if FONT.exists() else None


NEEDS: debian.Needs = {"chromium": lambda: debian.program("chromium"), "fonts-dejavu-core": font}

FLAGS = ("--disable-gpu", *(("--no-sandbox",) if os.geteuid() == 0 else ()))
"""Flags of Chromium, which refuses to start its sandbox as root."""


def chromium() -> Path:
    """Return the program; install it first if it is missing. Raises ClusterError if that fails."""
    debian.install(print, NEEDS, "Tests of the console in Chromium")
    found = debian.program("chromium")
    assert found is not None
    return found


@asynccontextmanager
async def running_chromium() -> AsyncGenerator[Browser]:
    """Run it for the time of the block. Raises ClusterError if it is missing and cannot be installed."""
    program = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


def main() -> int:
    """Install it, and return the exit code."""
    try:
        chromium()
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
