"""Reads objects from the apiserver that a node's agent refers to and the mirror does not have.

An agent may have received an object before us, so its report is a reason to ask, but not repeatedly: absent objects are
cached (a uid never comes back), and each node has a quota, so that a node that makes up uids does not keep the
apiserver busy.
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
"""Reads an object into its table. Raises ApiError, Unreachable."""

BURST, PER_SECOND = 128, 2.0
"""Reads for one node: all of its pods at once, when it starts while the mirror lags; hardly any afterwards."""

REMEMBERED = 10_000
"""Number of absent objects that are cached."""


class TooOften(Exception):
    """A node has used up its quota of reads for now."""


class Lookups:
    """The reads for one kind of reports."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._quota = Quota(BURST, PER_SECOND)
        self._absent: OrderedDict[tuple[Resource, Key, str], None] = OrderedDict()

    async def find(self, node: str, resource: Resource, key: Key, uid: str, held: Callable[[], T | None]) -> T | None:
        """Return the object of this uid, which `held` gets from its table; None when the apiserver does not have it.

        Raises TooOften, ApiError, Unreachable.
        """
        if (found := held()) is not None or (resource, key, uid) in self._absent:
            return found
        await self.read(node, resource, key)
        if (found := held()) is None:
            self._absent[resource, key, uid] = None
            if len(self._absent) > REMEMBERED:
                self._absent.popitem(last=False)
        return found

    async def read(self, node: str, resource: Resource, key: Key) -> None:
        """Read the object into its table. Raises TooOften, ApiError, Unreachable."""
        if not self._quota.take(node, asyncio.get_running_loop().time()):
            raise TooOften(f"too many objects were looked up for node {node}")
        await self._read(resource, *key)
