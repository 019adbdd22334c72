"""The declaration of a page: a pure function from the things that its reader may see to blocks."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import AnyBlock, Link
from flotilla_console.model.sight import Sight


class Page(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page: its title, the links that lead to it, and its blocks."""

    title: str
    blocks: tuple[AnyBlock, ...]
    trail: tuple[Link, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PageRequest:
    """All that a page is made of."""

    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    sight: Sight
    identity: Identity
    now: float
    read: object = None
    """The result of the page's `prepare`."""


@dataclass(frozen=True, kw_only=True)
class PageSpec:
    """The declaration of a page."""

    name: str
    path: str
    """A path pattern of FastAPI."""
    build: Callable[[PageRequest], Page | None]
    """Return the page, or None if its object does not exist or may not be seen. Pure, and done within 50 ms."""
    prepare: Callable[[PageRequest], Awaitable[object]] | None = None
    """Read first what the mirror does not have (logs, records of the bus); becomes `PageRequest.read`."""
    live: bool = True
    navigation: str = ""
    """Its label in the navigation; empty: it is not there."""
    parameters: tuple[str, ...] = field(default=())
    """The query parameters that the page understands."""
