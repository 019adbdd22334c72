"""Asks the apiserver before an absent object counts as deleted.

Objects that refer to each other come in different streams, so a mirror may receive the one before the other. Absence
from the mirror is only a reason to ask.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.mirror import Mirror

RETRY_SECONDS = 2.0
"""Delay after a failed read."""

REMEMBERED = 10_000
"""Number of results that are kept."""


class AbsenceCheck:
    """A cache of the absent objects that the apiserver has confirmed as deleted, by uid."""

    def __init__(self, mirror: Mirror, clock: Clock, requeue: Callable[[str, str], None]) -> None:
        """Use `requeue` to plan the keys that wait for a result."""
        self._mirror = mirror
        self._clock = clock
        self._requeue = requeue
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._askers: dict[str, dict[Key, None]] = {}  # keys that wait for the result
        self._log = structlog.get_logger()

    def confirm_deleted(self, resource: Resource, key: Key, uid: str, asker: Key) -> bool:
        """Report whether the apiserver has confirmed that the object is gone.

        If that is not known, it is asked, and all keys that asked meanwhile are planned again afterwards.
        """
        if uid in self._gone:
            return True
        # also objects that cannot be decoded, which would be asked for again and again
        if self._mirror.holds(resource, key, uid):
            return False
        self._askers.setdefault(uid, {})[asker] = None
        if uid not in self._asking:
            self._asking[uid] = asyncio.get_running_loop().create_task(self._ask(resource, key, uid))
        return False

    async def _ask(self, resource: Resource, key: Key, uid: str) -> None:
        try:
            await self._read(resource, key)
        finally:
            del self._asking[uid]
        if not self._mirror.holds(resource, key, uid):
            self._gone[uid] = None
            if len(self._gone) > REMEMBERED:
                self._gone.popitem(last=False)
        for asker in self._askers.pop(uid):
            self._requeue(*asker)

    async def _read(self, resource: Resource, key: Key) -> None:
        while True:
            try:
                await self._mirror.read(resource, *key)
            except (ApiError, Unreachable) as error:
                self._log.warning("cannot look up an object", object="/".join(key), error=str(error))
                await self._clock.sleep(RETRY_SECONDS)
            else:
                return
