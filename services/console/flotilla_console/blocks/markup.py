"""Markup as text that is escaped where it is made.

`element` is the only function that turns text into markup, so nothing of a user's objects can become markup.
"""

from collections.abc import Iterable, Mapping
from html import escape
from typing import TypeAlias


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Attribute: TypeAlias = str | int | bool | None
Attributes: TypeAlias = Mapping[str, Attribute]

_VOID = frozenset({"br", "input", "link", "meta"})


def element(tag: str, attributes: Attributes | None = None, *children: str) -> Markup:
    """Return an element; its attributes and those children that are no markup are escaped."""
    opening = f"<{tag}{''.join(_attribute(name, value) for name, value in (attributes or {}).items())}>"
    return Markup(opening if tag in _VOID else f"{opening}{join(children)}</{tag}>")


def join(children: Iterable[str]) -> Markup:
    """Return the children one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else _text(child) for child in children))


def local(href: str) -> str | None:
    """Return the link if it leads to a page of this server, else None.

    Browsers ignore control characters in links and read `\\` as `/`, so `/\\t/host` leads to another server.
    """
    if not href.startswith(("/", "?", "#")) or any(char < " " for char in href):
        return None
    return None if href[:2].replace("\\", "/") == "//" else href


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{_text(str(value))}"'


def _text(text: str) -> str:
    # Characters that HTML does not allow: NUL, and halves of surrogate pairs, which UTF-8 cannot encode.
    return escape(text.replace("\0", "\ufffd").encode("utf-8", "replace").decode())
