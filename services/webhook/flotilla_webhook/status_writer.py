"""Serializes writes to a status that many requests share.

These are the places of a WorkloadSpread (workloadspread.md §7) and the budget of a PodUnavailableBudget
(podunavailablebudget.md §8.6).

Each write is conditional on the version that it was decided on; after a conflict, its requests are decided again on the
newest version. Requests that come during a write share the next one: a burst of pods costs few writes, and two replicas
seldom conflict.

An outcome without a write, above all a refusal, could be based on an old copy. Where that matters, all requests that
wait for the write are decided again on a copy that is read after they came: they share one read.

If the outcome of a write is unknown, the object is read from the apiserver, and the requests are decided again: what a
request has already taken is in the status.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache

V = TypeVar("V", bound=Object)
D = TypeVar("D")
T = TypeVar("T")

WRITE_TIMEOUT_SECONDS = 5.0
"""Seconds after which a write with repeated conflicts fails. The apiserver waits for thirty seconds."""

_FIRST_PAUSE, _LAST_PAUSE, _JITTER = 0.005, 0.08, 0.5
"""Seconds before the object is read again.

The first read is immediate, and is skipped if the watch has shown a newer version.
"""

_CHECKS, _CHECK_SECONDS = 4, 0.002
"""After a conflict: the number of checks of the watch cache, and the seconds between them, before a GET."""

_AT_ONCE, _LEAST_SHARE, _MOST_SHARE = 2, 1.0, 2.0
"""The number of consecutive writes, and the pause before each further one as a multiple of the last write's duration.

A replica that has just written has the newest version before all others: without a pause, one that always has something
to write would win every time.
"""

Decide = Callable[[V, D], T]
"""Decides on an object and a draft of its status, which it changes in place.

Raises ValueError if this request cannot be decided.
"""


class Gone(Exception):
    """The object no longer exists."""


class NotRead(ValueError):
    """The object could not be read from the apiserver; the text gives the reason.

    A failed write raises ApiError or Unreachable instead: the two get different answers (podunavailablebudget.md §8.7).
    """


class StatusSchema(msgspec.Struct, Generic[V, D], frozen=True):
    """The part of a resource's objects that is written."""

    resource: Resource
    type: type[V]
    draft: Callable[[V], D]
    """Creates the draft that requests change."""
    changes: Callable[[V, D], Json]
    """Returns the draft's merge patch of the status, empty if it changes nothing."""


class _PendingRequest(Generic[V, D, T]):
    """A request that waits for its write."""

    def __init__(self, decide: Decide[V, D, T], stored: Callable[[T], None], is_sure: Callable[[T], bool]) -> None:
        self._decide = decide
        self._stored = stored
        self._is_sure = is_sure
        self._result: Any = None
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def decide(self, value: V, draft: D) -> None:
        if self.answer.done():  # the request was cancelled and must take nothing
            return
        try:
            self._result = self._decide(value, draft)
        except ValueError as fault:
            self._result = fault

    @property
    def is_uncertain(self) -> bool:
        """Report whether the request has to be decided again, on a copy that was read after it came."""
        result: Any = self._result
        return not (self.answer.done() or isinstance(result, Exception) or self._is_sure(result))

    def fail(self, failure: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(failure)

    def done(self) -> None:
        """Answer with the last decision."""
        if isinstance(self._result, Exception):
            self.fail(self._result)
        elif not self.answer.done():
            self._stored(self._result)
            self.answer.set_result(self._result)


class StatusWriter(Generic[V, D]):
    """The status of one object, as this process writes it."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        entropy: Entropy,
        schema: StatusSchema[V, D],
        cache: Cache[V],
        namespace: str,
        name: str,
    ) -> None:
        self._api = api
        self._clock = clock
        self._entropy = entropy
        self._schema = schema
        self._cache = cache
        self._place = namespace, name
        self._waiting: list[_PendingRequest[V, D, Any]] = []
        self._writing: asyncio.Task[None] | None = None
        self._last_duration = 0.0  # seconds of the last write

    @property
    def busy(self) -> bool:
        """Report whether a request waits for its write."""
        return self._writing is not None and not self._writing.done()

    def known(self) -> V | None:
        """Return this process's newest copy of the object, or None."""
        return self._cache.get(*self._place)

    async def write(
        self,
        decide: Decide[V, D, T],
        stored: Callable[[T], None] = lambda _: None,
        is_sure: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """Decide, wait for the write if there is something to write, and return the outcome.

        `stored` is called with the outcome before anything else is decided. Outcomes that `is_sure` rejects are decided
        again on a copy that is read after this call. Raises Gone, ApiError and Unreachable for a write that fails,
        NotRead, and ValueError for a request that cannot be decided.
        """
        entry = _PendingRequest(decide, stored, is_sure)
        self._waiting.append(entry)
        if not self.busy:
            self._writing = asyncio.create_task(self._work())
        return await entry.answer

    async def _work(self) -> None:
        writes = 0
        while self._waiting:
            if writes >= _AT_ONCE:
                await self._clock.sleep(self._last_duration * self._entropy.uniform(_LEAST_SHARE, _MOST_SHARE))
            entries, self._waiting = self._waiting, []
            try:
                writes += await self._write(entries)
            except Exception as failure:  # noqa: BLE001 - all who wait for the write get any failure
                for entry in entries:
                    entry.fail(failure)
            else:
                for entry in entries:
                    entry.done()

    async def _write(self, entries: Sequence[_PendingRequest[V, D, Any]]) -> bool:
        """Decide the requests and store the result; return whether there was something to store.

        Raises Gone, ApiError (409 after repeated conflicts) and Unreachable for the write, NotRead, and ValueError for
        an object that cannot be decoded.
        """
        value, pause = self.known(), 0.0
        is_newest = False
        end = self._clock.monotonic() + WRITE_TIMEOUT_SECONDS
        while True:
            try:
                if value is None:
                    value, is_newest = await self._read(), True
                changes = self._decided(entries, value)
                if not is_newest and any(entry.is_uncertain for entry in entries):
                    value = None
                    continue
                return await self._store(value, changes)
            except (ApiError, Unreachable) as failure:
                code = failure.code if isinstance(failure, ApiError) else 0
                if code == 404:
                    self._cache.forget(*self._place)
                    raise Gone from failure
                if (0 < code < 500 and code not in (409, 429)) or self._clock.monotonic() > end:
                    if value is None:
                        raise NotRead(str(failure)) from failure
                    raise
                value = await self._newer(value) if value is not None and code == 409 else None
                is_newest = False
            if value is None:
                await self._clock.sleep(pause * self._entropy.uniform(1, 1 + _JITTER))
                pause = min(max(pause * 2, _FIRST_PAUSE), _LAST_PAUSE)

    async def _newer(self, tried: V) -> V | None:
        """Return a version other than the tried one if the watch shows it within the time of a request, or None."""
        for _ in range(_CHECKS):
            known = self.known()
            if known is not None and known.metadata.resource_version != tried.metadata.resource_version:
                return known
            await self._clock.sleep(_CHECK_SECONDS)
        return None

    async def _read(self) -> V:
        body = await found_or_none(self._api.get(self._schema.resource, *self._place))
        if body is None:
            self._cache.forget(*self._place)
            raise Gone
        self._cache.take(body)
        return msgspec.json.decode(body, type=self._schema.type)

    def _decided(self, entries: Sequence[_PendingRequest[V, D, Any]], value: V) -> Json:
        """Return the merge patch of the status for all of these requests, empty if it changes nothing."""
        draft = self._schema.draft(value)
        for entry in entries:
            entry.decide(value, draft)
        return self._schema.changes(value, draft)

    async def _store(self, value: V, changes: Json) -> bool:
        if not changes:
            return False
        began, meta = self._clock.monotonic(), value.metadata
        body: Json = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": changes}
        written = await self._api.patch(
            self._schema.resource, *self._place, msgspec.json.encode(body), PatchType.MERGE, subresource="status"
        )
        self._cache.take(written)
        self._last_duration = self._clock.monotonic() - began
        return True
