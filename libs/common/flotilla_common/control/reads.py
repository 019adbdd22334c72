"""Reads from the apiserver that plans need, made beside planning; keys that wait for a read are requeued after it."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.mirror import Mirror

RETRY_SECONDS = 2.0
"""Delay after a failed read."""

CONCURRENT = 16
"""Concurrent reads; a rollout needs many at the same moment."""

REMEMBERED = 10_000
"""Number of deleted objects that are remembered."""

Q = TypeVar("Q")
A = TypeVar("A")

Get = Callable[[Resource, str, str], Awaitable[bytes]]
"""Reads an object. Raises ApiError, Unreachable."""


class Reads(Generic[Q, A]):
    """Questions to the apiserver with the keys that wait for their results, and results with the keys that use them.

    A result is kept while a key uses it. A read that stores what it has found elsewhere returns None: then nothing is
    kept here, and the next `ask` causes another read.
    """

    def __init__(
        self, read: Callable[[Q], Awaitable[A | None]], clock: Clock, requeue: Callable[[str, str], None]
    ) -> None:
        """Use `read` to get a result, and `requeue` to plan the keys that wait for it."""
        self._read = read
        self._clock = clock
        self._requeue = requeue
        self._keys: dict[Q, dict[Key, None]] = {}  # the keys that wait for a result or use it
        self._questions: dict[Key, dict[Q, None]] = {}  # the same by key
        self._results: dict[Q, A] = {}
        self._opened: asyncio.Queue[tuple[Q, dict[Key, None]]] = asyncio.Queue()
        self._free = asyncio.Semaphore(CONCURRENT)
        self._log = structlog.get_logger()

    def ask(self, key: Key, question: Q) -> A | None:
        """Return the result; None until it was read, which requeues the key."""
        if question not in self._keys:
            self._keys[question] = {}
            self._opened.put_nowait((question, self._keys[question]))
        self._keys[question][key] = None
        self._questions.setdefault(key, {})[question] = None
        return self._results.get(question)

    def ask_only(self, key: Key, question: Q) -> A | None:
        """Forget the other questions of the key, then ask this one."""
        for other in [one for one in self._questions.get(key, ()) if one != question]:
            self._drop(key, other)
        return self.ask(key, question)

    def forget(self, key: Key) -> None:
        """Drop the questions of the key, and the results that no other key uses."""
        for question in list(self._questions.get(key, ())):
            self._drop(key, question)

    async def run(self) -> None:
        """Read until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._answer(*await self._opened.get()))

    async def _answer(self, question: Q, keys: dict[Key, None]) -> None:
        while True:
            try:
                async with self._free:
                    if not self._waits(question, keys):
                        return
                    result = await self._read(question)
            except (ApiError, Unreachable, msgspec.MsgspecError) as error:
                waiting = ", ".join(map("/".join, keys))
                self._log.warning("cannot read an object that a plan needs", object=waiting, error=str(error))
                await self._clock.sleep(RETRY_SECONDS)
            else:
                break
        if self._waits(question, keys):
            self._finish(question, list(keys), result)

    def _waits(self, question: Q, keys: dict[Key, None]) -> bool:
        """Report whether the question is still open; one that was forgotten and asked again has another dict."""
        return self._keys.get(question) is keys

    def _finish(self, question: Q, keys: list[Key], result: A | None) -> None:
        if result is not None:
            self._results[question] = result
        for key in keys:
            if result is None:
                self._drop(key, question)
            self._requeue(*key)

    def _drop(self, key: Key, question: Q) -> None:
        del self._questions[key][question], self._keys[question][key]
        if not self._questions[key]:
            del self._questions[key]
        if not self._keys[question]:
            del self._keys[question]
            self._results.pop(question, None)


class Absent(NamedTuple):
    """An object that the mirror lacks."""

    resource: Resource
    key: Key
    uid: str


class AbsenceCheck:
    """A cache of the absent objects that the apiserver has confirmed as deleted, by uid.

    Objects that refer to each other come in different streams, so a mirror may receive the one before the other.
    Absence from the mirror is only a reason to ask.
    """

    def __init__(self, mirror: Mirror, clock: Clock, requeue: Callable[[str, str], None]) -> None:
        """Use `requeue` to plan the keys that wait for a result."""
        self._mirror = mirror
        self._reads: Reads[Absent, None] = Reads(self._read, clock, requeue)
        self._gone: OrderedDict[str, None] = OrderedDict()
        self.run = self._reads.run

    def confirm_deleted(self, resource: Resource, key: Key, uid: str, asker: Key) -> bool:
        """Report whether the apiserver has confirmed that the object is gone.

        If that is not known, it is asked, and all keys that asked meanwhile are planned again afterwards.
        """
        if uid in self._gone:
            return True
        # also objects that cannot be decoded, which would be asked for again and again
        if not self._mirror.holds(resource, key, uid):
            self._reads.ask(asker, Absent(resource, key, uid))
        return False

    async def _read(self, absent: Absent) -> None:
        """Read the object into the mirror. Raises ApiError, Unreachable."""
        await self._mirror.read(absent.resource, *absent.key)
        if not self._mirror.holds(*absent):
            self._gone[absent.uid] = None
            if len(self._gone) > REMEMBERED:
                self._gone.popitem(last=False)
