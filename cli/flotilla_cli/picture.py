"""What `flotilla get` shows: the tree of a workload, or the card of another object."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime

import msgspec
from rich.console import RenderableType

from flotilla_cli.tree.why import Why, decode_why
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import Message
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api

RETRY_SECONDS = 1.0
"""Pause before a watch that broke is started again."""


class Gone(Exception):
    """The object does not exist (any more)."""


class Picture(ABC):
    """The present state of an object, and how it looks. The reasons come over the bus."""

    def __init__(self, api: Api, clock: Clock, resource: Resource, namespace: str, name: str) -> None:
        self._api = api
        self._clock = clock
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self.why: Why | None = None
        self.changed = asyncio.Event()
        self.trouble = ""  # why it may be out of date; empty when it is not

    @property
    def parts(self) -> int:
        """Tables that share the screen."""
        return 1

    @abstractmethod
    async def load(self) -> None:
        """Read everything once. Raises ApiError (404 when there is no such object), Unreachable."""

    @abstractmethod
    async def keep(self) -> None:
        """Follow all changes until cancelled. Raises Gone when the object is deleted."""

    @abstractmethod
    def view(self) -> msgspec.Struct:
        """What is shown, as data. Raises Gone."""

    @abstractmethod
    def drawing(self, now: datetime, lines: int = 0) -> RenderableType:
        """How it looks, with at most that many lines per table (0: all)."""

    def hear(self, message: Message) -> None:
        """Take in a record of why.v1; one that cannot be read is as good as none."""
        self.why = decode_why(message.data)
        self.changed.set()

    async def _pause(self, trouble: Exception) -> None:
        """A watch broke: say so, and wait a moment."""
        self.trouble = str(trouble)
        self.changed.set()
        await self._clock.sleep(RETRY_SECONDS)


Opener = Callable[[Api, Clock, Resource, str, str], Picture]
"""Begins the picture of an object, by namespace and name."""
