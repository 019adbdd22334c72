"""What `flotilla get` shows: the tree of a workload, or the card of another object."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import msgspec
from rich.console import RenderableType

from flotilla_cli.tree.why import Why
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import Message
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api


class Picture(Protocol):
    """The present state of an object, and how it looks."""

    why: Why | None
    changed: asyncio.Event
    trouble: str  # why it may be out of date; empty when it is not

    @property
    def parts(self) -> int:
        """Tables that share the screen."""
        ...

    async def load(self) -> None:
        """Read everything once. Raises ApiError (404 when there is no such object), Unreachable."""
        ...

    async def keep(self) -> None:
        """Follow all changes until cancelled. Raises Gone when the object is deleted."""
        ...

    def hear(self, message: Message) -> None:
        """Take in a record of why.v1."""
        ...

    def view(self) -> msgspec.Struct:
        """What is shown, as data. Raises Gone."""
        ...

    def drawing(self, now: datetime, lines: int) -> RenderableType:
        """For a terminal, with at most that many lines per table (0: all)."""
        ...

    def plain(self, now: datetime) -> str:
        """For a pipe."""
        ...


Opener = Callable[[Api, Clock, Resource, str, str], Picture]
"""Begins the picture of an object, by namespace and name."""
