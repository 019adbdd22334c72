"""The way between a process and the apiserver, where everything that can go wrong on a network goes wrong.

A wire carries each request there and its reply back, and each watch event to its watcher. Faults are wires of their
own: they delay, refuse, lose the request before `serve` or the reply after it, hold one resource's events back, cut a
watch, or claim that its history is gone.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import WatchEvent

T = TypeVar("T")

ONE_WAY = 0.001
"""Fake seconds that a message takes in one direction."""

WRITES = frozenset({"create", "patch", "replace", "delete"})
"""The verbs that can change something."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request on its way."""

    writer: str
    index: int  # the writer's nth request
    verb: str  # "get", "list", "watch", "create", "patch", "replace", "delete"
    resource: Resource
    namespace: str
    name: str = ""  # empty for a LIST, a WATCH and a generated name
    subresource: str = ""
    body: bytes = b""
    dry_run: bool = False

    @property
    def writes(self) -> bool:
        """The request changes something if it arrives."""
        return self.verb in WRITES and not self.dry_run


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One watch event on its way."""

    event: WatchEvent
    revision: int
    at: float  # fake seconds (`Clock.monotonic`) when the apiserver sent it


class Wire(Protocol):
    """The network between one process and the apiserver."""

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        """Carry the request, call `serve()` (the commit), carry the reply.

        May delay, and raise ApiError or Unreachable before or after `serve`; calling it twice sends the request twice.
        """
        ...

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        """Deliver the event to its watcher; returning False loses it.

        No real network does that, but a broken watch cache might. Events of one watch arrive in order, so holding one
        holds all later ones. Unreachable cuts the watch, ApiError 410 ends it instead of that event.
        """
        ...


class PlainWire:
    """A network without faults: every message takes ONE_WAY."""

    def __init__(self, clock: Clock, one_way: float = ONE_WAY) -> None:
        self._clock = clock
        self._one_way = one_way

    async def carry(self, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        await self._clock.sleep(self._one_way)
        reply = await serve()
        await self._clock.sleep(self._one_way)
        return reply

    async def deliver(self, request: Request, delivery: Delivery) -> bool:
        wait = delivery.at + self._one_way - self._clock.monotonic()
        if wait > 0:
            await self._clock.sleep(wait)
        return True
