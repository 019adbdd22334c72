"""A page that is open in some browser: rendered when something changed, and encoded once for all its readers."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from flotilla_console.access.identity import Identity
from flotilla_console.live.difference import Difference, difference
from flotilla_console.live.events import encoded
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page
from flotilla_console.web.pages import Address


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """A whole page; no page: it does not exist any more."""

    path: str
    version: int
    now: float
    page: Page | None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The way from one version of a page to the next."""

    path: str
    version: int
    """The version that it leads to, from the one before."""
    now: float
    difference: Difference


@dataclass(frozen=True)
class ViewKey:
    """The properties that all readers of a view have in common."""

    path: str
    sight: Sight
    owner: str
    """The one stream that has it, if the page reads something for its reader; empty: all with the same sight."""


class View:
    """A page that is looked at."""

    def __init__(self, address: Address, sight: Sight, identity: Identity) -> None:
        self.address, self._sight, self._identity = address, sight, identity
        self.version = 0
        """The version of the page; 0 before it was rendered."""
        self._seen: int | None = None
        self._page: Page | None = None
        self._now = 0.0
        self._whole: bytes | None = None
        self._step: bytes | None = None

    @property
    def is_stale(self) -> bool:
        """Report whether something changed since the page was rendered."""
        return self._seen != self._sight.version

    async def render(self, now: Callable[[], float]) -> bool:
        """Render the page again and report whether it changed. Raises the errors of the page."""
        seen, spec, read = self._sight.version, self.address.spec, None
        if spec.prepare is not None:
            read = await spec.prepare(self.address.request(self._sight, self._identity, now()))
        self._seen, self._now = seen, now()
        page = spec.build(self.address.request(self._sight, self._identity, self._now, read))
        if self.version and page == self._page:
            return False
        before, self._page = self._page, page
        self.version += 1
        self._whole = None
        self._step = None if before is None or page is None else self._encode_step(before, page)
        return True

    def event(self, known: int) -> bytes:
        """Return the event for a reader that has this version: the difference, or the whole page."""
        if known and known == self.version - 1 and self._step is not None:
            return self._step
        if self._whole is None:
            whole = Whole(path=self.address.path, version=self.version, now=self._now, page=self._page)
            self._whole = encoded("page", whole)
        return self._whole

    def _encode_step(self, before: Page, page: Page) -> bytes:
        step = Step(path=self.address.path, version=self.version, now=self._now, difference=difference(before, page))
        return encoded("step", step)
