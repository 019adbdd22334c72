"""Objects that are read from the apiserver because a node's agent speaks of them and the mirror does not know them.

An agent may have heard of an object before we have, so its word is a reason to ask. But not again and again: what the
apiserver has said does not exist is remembered (a uid never comes back), and each node has a quota, so that one that
makes uids up does not keep the apiserver busy.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from flotilla_common.api.resources import Resource
from flotilla_common.node.quota import Quota

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace and name."""

Read = Callable[[Resource, str, str], Awaitable[object]]
"""Brings an object into its table. Raises ApiError, Unreachable."""

BURST, PER_SECOND = 128, 2.0
"""Reads for one node: all of its pods at once, when it starts beside a mirror that is behind; and hardly any after."""

REMEMBERED = 10_000
"""Absent objects that are remembered."""


class TooOften(Exception):
    """A node has had too much looked up for it; later it may again."""


class Lookups:
    """The reads of one kind of reports."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._quota = Quota(BURST, PER_SECOND)
        self._absent: OrderedDict[tuple[Resource, Key, str], None] = OrderedDict()

    async def find(self, node: str, resource: Resource, key: Key, uid: str, held: Callable[[], T | None]) -> T | None:
        """The object of this uid, which `held` takes from its table; None when the apiserver has said that there is
        none. Raises TooOften, ApiError, Unreachable."""
        if (found := held()) is not None or (resource, key, uid) in self._absent:
            return found
        await self.read(node, resource, key)
        if (found := held()) is None:
            self._absent[resource, key, uid] = None
            if len(self._absent) > REMEMBERED:
                self._absent.popitem(last=False)
        return found

    async def read(self, node: str, resource: Resource, key: Key) -> None:
        """Bring the object into its table. Raises TooOften, ApiError, Unreachable."""
        if not self._quota.take(node, asyncio.get_running_loop().time()):
            raise TooOften(f"too much was looked up for node {node}")
        await self._read(resource, *key)
