"""Gets Debian's Chromium, which the tests of the console use.

python -m tests.support.chromium
"""

import os
import sys
from pathlib import Path

from flotilla_cli.local import ClusterError
from flotilla_dev.cluster.realnodes import debian

FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def font() -> Path | None:
    """Return the font of pages and pictures: without any, each text is a row of boxes."""
    return FONT if FONT.exists() else None


NEEDS: debian.Needs = {"chromium": lambda: debian.program("chromium"), "fonts-dejavu-core": font}

FLAGS = ("--no-sandbox",) if os.geteuid() == 0 else ()
"""Chromium refuses to start its sandbox as root."""


def chromium() -> Path:
    """Return the program; install it first if it is missing. Raises ClusterError if that fails."""
    debian.install(print, NEEDS, "Tests of the console in Chromium")
    found = debian.program("chromium")
    assert found is not None
    return found


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
