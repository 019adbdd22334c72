"""Writes to the book of places of one WorkloadSpread (workloadspread.md §7).

Each write holds for exactly the version that it was decided on; where somebody was faster, what is decided is decided
anew on what there is now. Requests that come while a write is under way share the next one: a burst of pods costs few
writes, and two replicas get in each other's way seldom.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.kinds.workloadspread.book import stored
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD, SubsetStatus, WorkloadSpread
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache

T = TypeVar("T")

ATTEMPTS = 4
_FIRST_PAUSE, _FACTOR, _JITTER = 0.01, 5, 0.1

Books = dict[str, list[SubsetStatus]]
Decide = Callable[[WorkloadSpread, Books], T]
"""Decides on the books as they are, and changes them in place. Raises ValueError: this request cannot be decided."""


class Gone(Exception):
    """The WorkloadSpread does not exist any more."""


class _Entry(Generic[T]):
    """A request that waits for its write."""

    def __init__(self, decide: Decide[T]) -> None:
        self._decide = decide
        self._result: T | Exception | None = None
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def decide(self, spread: WorkloadSpread, books: Books) -> None:
        try:
            self._result = self._decide(spread, books)
        except ValueError as fault:
            self._result = fault

    def fail(self, failure: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(failure)

    def done(self) -> None:
        """What was decided last stands."""
        if isinstance(self._result, Exception):
            self.fail(self._result)
        elif not self.answer.done():
            self.answer.set_result(self._result)  # type: ignore[arg-type]


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
        self._waiting: list[_Entry[object]] = []
        self._writer: asyncio.Task[None] | None = None

    async def write(self, decide: Decide[T]) -> T:
        """Return what is decided once it is stored, or nothing is to be stored. Raises Gone, ApiError, Unreachable, and
        ValueError for what cannot be decided."""
        entry = _Entry(decide)
        self._waiting.append(entry)  # type: ignore[arg-type]
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._work())
        return await entry.answer

    async def _work(self) -> None:
        while self._waiting:
            entries, self._waiting = self._waiting, []
            try:
                await self._write(entries)
            except (ApiError, Unreachable, Gone) as failure:
                for entry in entries:
                    entry.fail(failure)
            else:
                for entry in entries:
                    entry.done()

    async def _write(self, entries: Sequence[_Entry[object]]) -> None:
        """Decide, and store it. Raises Gone, ApiError (409 when others keep being faster), Unreachable."""
        spread, pause = self._cache.get(*self._place), _FIRST_PAUSE
        for attempt in range(1, ATTEMPTS + 1):
            spread = spread or await self._read()
            before = spread.status.versioned_subset_statuses
            books: Books = {version: list(book) for version, book in before.items()}
            for entry in entries:
                entry.decide(spread, books)
            changed = {version: book for version, book in books.items() if book != before.get(version)}
            try:
                await self._store(spread, changed)
            except ApiError as failure:
                if failure.code == 404:
                    raise Gone from failure
                if failure.code != 409 or attempt == ATTEMPTS:
                    raise
            else:
                return
            await self._clock.sleep(pause * self._entropy.uniform(1, 1 + _JITTER))
            spread, pause = None, pause * _FACTOR

    async def _read(self) -> WorkloadSpread:
        body = await found_or_none(self._api.get(WORKLOAD_SPREAD, *self._place))
        if body is None:
            raise Gone
        self._cache.take(body)
        return msgspec.json.decode(body, type=WorkloadSpread)

    async def _store(self, spread: WorkloadSpread, changed: Books) -> None:
        if not changed:
            return
        meta = spread.metadata
        books = {version: [stored(entry) for entry in book] for version, book in changed.items()}
        body: Json = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"versionedSubsetStatuses": books},
        }
        written = await self._api.patch(
            WORKLOAD_SPREAD, *self._place, msgspec.json.encode(body), PatchType.MERGE, subresource="status"
        )
        self._cache.take(written)
