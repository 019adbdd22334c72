"""A card that is read from the apiserver and kept fresh by a watch; the reasons come over the bus."""

import asyncio
from datetime import datetime

from rich.console import RenderableType

from flotilla_cli.card.card import Card, Renderer, card
from flotilla_cli.card.render import plain, render
from flotilla_cli.tree.live import RETRY_SECONDS, Gone
from flotilla_cli.tree.why import Why, decode_why
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import Message
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable


class LiveCard:
    """The present state of one object."""

    def __init__(
        self, renderer: Renderer, api: Api, clock: Clock, resource: Resource, namespace: str, name: str
    ) -> None:
        self._renderer = renderer
        self._api = api
        self._clock = clock
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self._raw = b""
        self.why: Why | None = None
        self.changed = asyncio.Event()
        self.trouble = ""  # why the card may be out of date; empty when it is not

    async def load(self) -> None:
        """Read it once. Raises ApiError (404 when there is no such object), Unreachable."""
        self._raw = await self._api.get(self._resource, self._namespace, self._name)

    async def keep(self) -> None:
        """Follow all changes until cancelled. Raises Gone when the object is deleted."""
        while True:
            try:
                await self.load()
                self.trouble = ""
                self.changed.set()
                await self._follow(metadata_of(self._raw).resource_version)
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.code == 404:
                    raise Gone from error
                self.trouble = str(error)
                self.changed.set()
                await self._clock.sleep(RETRY_SECONDS)

    def hear(self, message: Message) -> None:
        """Take in a record of why.v1; one that cannot be read is as good as none."""
        self.why = decode_why(message.data)
        self.changed.set()

    def view(self) -> Card:
        """The card as it is now."""
        return card(self._resource.kind, self._raw, self._renderer, self.why)

    @property
    def parts(self) -> int:
        """One table."""
        return 1

    def drawing(self, now: datetime, lines: int) -> RenderableType:
        """For a terminal; a card is short enough for any."""
        return render(self.view(), now)

    def plain(self, now: datetime) -> str:
        """For a pipe."""
        return plain(self.view(), now)

    async def _follow(self, version: str) -> None:
        async for event in self._api.watch(self._resource, version, namespace=self._namespace):
            if event.type not in ("ADDED", "MODIFIED", "DELETED"):
                continue
            if metadata_of(event.object).name != self._name:
                continue
            if event.type == "DELETED":
                raise Gone
            self._raw = bytes(event.object)
            self.changed.set()
