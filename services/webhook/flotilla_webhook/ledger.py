"""Writes to the book of places of one WorkloadSpread (workloadspread.md §7).

Each write holds for exactly the version that it was decided on; where somebody was faster, what is decided is decided
anew on what there is now. Requests that come while a write is under way share the next one: a burst of pods costs few
writes, and two replicas get in each other's way seldom.

Where nobody knows whether a write arrived, the apiserver is asked what there is, and what is decided is decided anew:
a place that a request has taken already is found by its key.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.workloadspread.book import stored
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, SubsetStatus, WorkloadSpread
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache

T = TypeVar("T")

PATIENCE_SECONDS = 5.0
"""How long others may keep being faster. The apiserver waits for thirty seconds."""

_FIRST_PAUSE, _LAST_PAUSE, _JITTER = 0.005, 0.08, 0.5
"""Seconds before the apiserver is asked again what there is. At first it is asked at once, and where the watch has
shown it meanwhile, it is not asked at all."""

_LOOKS, _LOOK_SECONDS = 4, 0.002
"""After a conflict, the number of looks at the watch cache, and the seconds between them, before a GET."""

_AT_ONCE, _LEAST_SHARE, _MOST_SHARE = 2, 1.0, 2.0
"""So many writes follow each other at once; then each waits, in times of what the last one took. Whoever has just
written knows what there is, and others have yet to hear of it: a replica that always has something to write would leave
none of the others a turn."""

Books = dict[str, list[SubsetStatus]]
Decide = Callable[[WorkloadSpread, Books], T]
"""Decides on the books as they are, and changes them in place. Raises ValueError: this request cannot be decided."""


class Gone(Exception):
    """The WorkloadSpread does not exist any more."""


class _Entry(Generic[T]):
    """A request that waits for its write."""

    def __init__(self, decide: Decide[T], stored: Callable[[T], None]) -> None:
        self._decide = decide
        self._stored = stored
        self._result: Any = None
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def decide(self, spread: WorkloadSpread, books: Books) -> None:
        if self.answer.done():  # its caller is gone: nobody would use the place
            return
        try:
            self._result = self._decide(spread, books)
        except ValueError as fault:
            self._result = fault

    def fail(self, failure: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(failure)

    def done(self) -> None:
        """Answer with what was decided last."""
        if isinstance(self._result, Exception):
            self.fail(self._result)
        elif not self.answer.done():
            self._stored(self._result)
            self.answer.set_result(self._result)


class Ledger:
    """The book of one WorkloadSpread, as this process writes it."""

    def __init__(
        self, api: Api, clock: Clock, entropy: Entropy, cache: Cache[WorkloadSpread], namespace: str, name: str
    ) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._cache = cache
        self._place = namespace, name
        self._waiting: list[_Entry[Any]] = []
        self._writer: asyncio.Task[None] | None = None
        self._took = 0.0  # seconds of the last write

    def known(self) -> WorkloadSpread | None:
        """Return the newest copy of the WorkloadSpread that this process has; None if it has none."""
        return self._cache.get(*self._place)

    async def write(self, decide: Decide[T], stored: Callable[[T], None] = lambda _: None) -> T:
        """Return what is decided once it is stored, or nothing is to be stored; `stored` is called with it before
        anything else is decided. Raises Gone, ApiError, Unreachable, and ValueError for what cannot be decided."""
        entry = _Entry(decide, stored)
        self._waiting.append(entry)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._work())
        return await entry.answer

    async def _work(self) -> None:
        writes = 0
        while self._waiting:
            if writes >= _AT_ONCE:
                await self._clock.sleep(self._took * self._entropy.uniform(_LEAST_SHARE, _MOST_SHARE))
            writes += 1
            entries, self._waiting = self._waiting, []
            try:
                await self._write(entries)
            except Exception as failure:  # noqa: BLE001 - whatever it is, those who wait for the write get it
                for entry in entries:
                    entry.fail(failure)
            else:
                for entry in entries:
                    entry.done()

    async def _write(self, entries: Sequence[_Entry[Any]]) -> None:
        """Decide, and store it. Raises Gone, ApiError (409 when others keep being faster), Unreachable, and ValueError
        for a WorkloadSpread that cannot be read."""
        spread, pause = self.known(), 0.0
        end = self._clock.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                spread = spread or await self._read()
                return await self._store(spread, _decided(entries, spread))
            except (ApiError, Unreachable) as failure:
                code = failure.code if isinstance(failure, ApiError) else 0
                if code == 404:
                    self._cache.forget(*self._place)
                    raise Gone from failure
                if (0 < code < 500 and code not in (409, 429)) or self._clock.monotonic() > end:
                    raise
                spread = await self._newer(spread) if spread is not None and code == 409 else None
            if spread is None:
                await self._clock.sleep(pause * self._entropy.uniform(1, 1 + _JITTER))
                pause = min(max(pause * 2, _FIRST_PAUSE), _LAST_PAUSE)

    async def _newer(self, tried: WorkloadSpread) -> WorkloadSpread | None:
        """Return what the watch shows now, or within the time that a request would take; None if that is no newer than
        what was tried."""
        for _ in range(_LOOKS):
            known = self.known()
            if known is not None and known.metadata.resource_version != tried.metadata.resource_version:
                return known
            await self._clock.sleep(_LOOK_SECONDS)
        return None

    async def _read(self) -> WorkloadSpread:
        body = await found_or_none(self._api.get(WORKLOAD_SPREAD, *self._place))
        if body is None:
            raise Gone
        self._cache.take(body)
        return msgspec.json.decode(body, type=WorkloadSpread)

    async def _store(self, spread: WorkloadSpread, changed: Books) -> None:
        if not changed:
            return
        began, meta = self._clock.monotonic(), spread.metadata
        books = {version: [stored(entry) for entry in book] for version, book in changed.items()}
        body: Json = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"versionedSubsetStatuses": books},
        }
        written = await self._api.patch(
            WORKLOAD_SPREAD, *self._place, msgspec.json.encode(body), PatchType.MERGE, subresource="status"
        )
        self._cache.take(written)
        self._took = self._clock.monotonic() - began


def _decided(entries: Sequence[_Entry[Any]], spread: WorkloadSpread) -> Books:
    """Return the books that change."""
    before = spread.status.versioned_subset_statuses
    books: Books = {version: list(book) for version, book in before.items()}
    for entry in entries:
        entry.decide(spread, books)
    return {version: book for version, book in books.items() if book != before.get(version)}
