"""A page as the browser gets it: as JSON for scripts, and as a document."""

from collections.abc import Mapping

import msgspec

from flotilla_console.blocks.types import Notice
from flotilla_console.page import Page


class Entry(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    label: str
    href: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """All that the browser renders: a page, its surroundings, and how fresh it is."""

    path: str
    """The path of the page, which is the name of its view in the live stream, too."""
    query: Mapping[str, str]
    page: Page
    now: float
    as_of: float
    banners: tuple[Notice, ...] = ()
    navigation: tuple[Entry, ...] = ()
    user: str = ""
    session: bool = False
    """True if there is a session that the user can end."""
    csrf: str = ""
    live: bool = False


def in_script(of: Shown) -> str:
    """Return the JSON of a page so that it can be in a `<script>` element: nothing in it ends the element."""
    text = msgspec.json.encode(of).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
