"""Reads the node's objects, with one reader and one set of copies per resource, and reports the state to /readyz."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.channel.copies import Copies
from flotilla_nodeagent.channel.reader import Reader

T = TypeVar("T", bound=Object)

LOOK_SECONDS = 2.0
"""Interval of updating the state for /readyz."""


class Channel:
    """The copies of this node's objects."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._readers: dict[str, tuple[Reader, Callable[[], bool]]] = {}
        self._optional: set[str] = set()

    def copies(self, resource: Resource, kind: type[T], *, optional: bool = False) -> Copies[T]:
        """Return the node's objects of the resource, decoded as `kind`. Call it before `run`.

        Without `optional` the agent is not ready before it has read them; with it, the kind may be one that is not
        served here.
        """
        copies = Copies[T](resource, kind)
        reader = Reader(
            bus=self._context.bus,
            clock=self._context.clock,
            entropy=self._context.entropy,
            node=self._context.node,
            resource=resource,
            on_message=copies.receive,
            on_reset=copies.reset,
        )
        self._readers[resource.plural] = reader, lambda: copies.synced
        if optional:
            self._optional.add(resource.plural)
        self._context.status.ready(resource.plural, optional, "not read yet")
        return copies

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reader, _ in self._readers.values():
                group.create_task(reader.run())
            group.create_task(self._watch())

    async def _watch(self) -> None:
        status = self._context.status
        while True:
            connected = self._context.bus.connected
            status.ready("bus", connected, "" if connected else "no NATS server answers")
            for plural, (reader, synced) in self._readers.items():
                why = "" if synced() else "waiting for all of the node's objects"
                if not reader.healthy:
                    why = "the watcher does not deliver"
                status.ready(plural, not why or plural in self._optional, why)
            await self._context.clock.sleep(LOOK_SECONDS)
