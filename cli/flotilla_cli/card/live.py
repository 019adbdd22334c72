"""A card that is read from the apiserver and kept fresh by a watch."""

from datetime import datetime

from rich.console import RenderableType

from flotilla_cli.card.card import Card, Renderer, card
from flotilla_cli.card.render import render
from flotilla_cli.picture import Gone, Picture
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable


class LiveCard(Picture):
    """The present state of one object."""

    def __init__(
        self, renderer: Renderer, api: Api, clock: Clock, resource: Resource, namespace: str, name: str
    ) -> None:
        super().__init__(api, clock, resource, namespace, name)
        self._renderer = renderer
        self._raw = b""

    async def load(self) -> None:
        self._raw = await self._api.get(self._resource, self._namespace, self._name)

    async def keep(self) -> None:
        while True:
            try:
                await self.load()
                self.trouble = ""
                self.changed.set()
                await self._follow(metadata_of(self._raw).resource_version)
            except (ApiError, Unreachable) as error:
                if isinstance(error, ApiError) and error.code == 404:
                    raise Gone from error
                await self._pause(error)

    def view(self) -> Card:
        return card(self._resource.kind, self._raw, self._renderer, self.why)

    def drawing(self, now: datetime, lines: int = 0) -> RenderableType:
        """A card is short enough for any terminal."""
        return render(self.view(), now)

    async def _follow(self, version: str) -> None:
        async for event in self._api.watch(self._resource, version, namespace=self._namespace):
            if event.type not in ("ADDED", "MODIFIED", "DELETED") or metadata_of(event.object).name != self._name:
                continue
            if event.type == "DELETED":
                raise Gone
            self._raw = bytes(event.object)
            self.changed.set()
