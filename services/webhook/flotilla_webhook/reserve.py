"""Places of one WorkloadSpread that are taken ahead, so that pods need not wait for a write of the book (ADR 29).

While many pods come, a replica takes more places than it has pods for. They stand in the book under keys of its own
until a later write names the pods that have got them. What is left when pods stop coming is returned; what a replica
leaves behind that dies is free again after the time-out of pods that are never seen.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Set
from datetime import timedelta
from typing import NamedTuple

import structlog

from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.workloadspread.book import AHEAD, Book, token_of, with_places
from flotilla_common.api.kinds.workloadspread.types import UNLIMITED, SubsetStatus, WorkloadSpread
from flotilla_common.clock import Clock, Entropy
from flotilla_webhook.ledger import Books, Gone, Ledger

WINDOW_SECONDS = 1.0
MANY = 3
"""The number of pods within the window from which on places are taken ahead. Fewer pods wait for their writes."""

LEAST_SECONDS = 0.1
"""The shortest time that a rate is computed from."""

IDLE_SECONDS = 1.0
"""The time without a pod after which all places are returned. The apiserver reuses connections, so the pods of one
replica come in bursts."""

AHEAD_SECONDS = 0.5
"""The time that the places of a replica should last at the current rate. A replica takes more when it has used half of
them, because a write may be slow or conflict."""

LAST_SECONDS = 0.1
"""The time that a replica may keep the last places of a subset, because pods of other replicas wait for them: it keeps
as many as pods came within that time."""

LAST = 8
"""The number of free places of a subset that one write shares out among the active replicas."""

SHARE = 2
"""A replica holds at most this fraction (one half) of the places that are left, so that other replicas find some."""

FRESH_SECONDS = 5.0
"""The age up to which a place that was taken ahead is given to a pod. The controller drops it after thirty seconds."""

TICK_SECONDS = 0.02
"""The interval between two checks for something to write."""

_Subset = tuple[str, str]
"""The version of a book, and the name of one of its subsets."""

_log = structlog.get_logger()


class _Place(NamedTuple):
    """A place that was taken ahead."""

    key: str
    until: float  # when it is too old to be given to a pod


class _Given(NamedTuple):
    """A place that was given to a pod, until the book names the pod."""

    subset: _Subset
    key: str
    pod: str  # its name, or its token


class _Written(NamedTuple):
    """The changes of one write, applied to the memory of this replica once it is stored."""

    taken: list[tuple[_Subset, _Place]]
    given: list[_Given]
    returned: set[str]


class Reserve:
    """The places that this replica has taken ahead."""

    def __init__(self, ledger: Ledger, clock: Clock, entropy: Entropy) -> None:
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._own = f"{AHEAD}{entropy.token()}/"  # how the keys of this replica begin
        self._came: deque[tuple[float, str]] = deque()  # when pods came lately, and their versions
        self._held: dict[_Subset, deque[_Place]] = {}  # the oldest first
        self._given: list[_Given] = []
        self._returned: set[str] = set()  # keys that the next write takes out of the book
        self._others: dict[str, float] = {}  # how the keys of other replicas begin, and when a new one was seen
        self._keys: Set[str] = frozenset()  # places that were taken ahead, in the books as they were last looked at
        self._looked_at: Mapping[str, Book] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._hurried: asyncio.Task[None] | None = None
        self._is_writing = False
        self._failed = False

    def came(self, version: str) -> None:
        """Count a pod. If many come, places are taken ahead from now on."""
        self._came.append((self._clock.monotonic(), version))
        if self._rates():
            self._begin()

    def holds(self, version: str, subset: str) -> bool:
        """Return whether a place can be given to a pod at once."""
        held = self._held.get((version, subset))
        return bool(held) and held[0].until > self._clock.monotonic()

    def give(self, version: str, subset: str, pod: str) -> str:
        """Give a place to a pod, and return its token. The book will know the pod by its name, or by the token."""
        key = self._held[version, subset].popleft().key
        token = key.removeprefix(self._own)
        self._given.append(_Given((version, subset), key, pod or token))
        return token

    def given_to(self, version: str, pod: str) -> str:
        """Return the subset in which the pod of this name has just got a place; empty for none."""
        found = (given.subset for given in self._given if given.pod == pod)
        return next((subset for of, subset in found if of == version), "")

    def is_awaited(self, entry: SubsetStatus) -> bool:
        """Return whether any replica holds places of the subset. Until it gives or returns them, within moments, it is
        not certain that the subset is full."""
        given = {given.key for given in self._given}
        dead = self._clock.now() - timedelta(seconds=FRESH_SECONDS)
        return any(
            key.startswith(AHEAD) and since > dead and key not in given for key, since in entry.creating_pods.items()
        )

    async def close(self) -> None:
        """Return all places to the book."""
        self._came.clear()
        if self._keeper is not None:
            await self._keeper

    def adopt(self) -> None:
        """Hold places that the book has for this replica and that are new to it: from another replica that shared out
        the last ones, or from a write of its own whose outcome was unknown."""
        books, now = self._books(), self._clock.monotonic()
        if self._is_writing or self._failed or books is self._looked_at:
            return
        first, self._looked_at = self._looked_at is None, books
        keys = {
            key: (version, entry.name)
            for version, book in books.items()
            for entry in book
            for key in entry.creating_pods
            if key.startswith(AHEAD)
        }
        new, self._keys = keys.keys() - self._keys, keys.keys()
        known = {place.key for held in self._held.values() for place in held} | {given.key for given in self._given}
        for key in sorted(new - known - self._returned):
            if key.startswith(self._own):
                self._held.setdefault(keys[key], deque()).append(_Place(key, now + FRESH_SECONDS))
                self._begin()
            elif not first:  # nobody knows how old those are that were there before
                self._others[key.removesuffix(token_of(key))] = now

    def hurry(self) -> None:
        """Add what is due to the write that a pod is about to wait for."""
        if self._keeper is not None and not self._keeper.done() and not self._is_writing:
            self._hurried = asyncio.create_task(self._sync())

    def _begin(self) -> None:
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        """Take places ahead while many pods come, write down who got them, and return what is left."""
        self._failed = False
        while not self._failed and (self._rates() or self._held or self._given or self._returned):
            await self._sync()
            await self._clock.sleep(TICK_SECONDS)

    async def _sync(self) -> None:
        """Write what is due. After a failure nothing is held: what is in the book has a time-out."""
        self.adopt()
        self._let_go()
        if self._is_writing or not self._is_due():
            return
        self._is_writing = True
        try:
            await self._ledger.write(self._write, self._settle)
        except (Gone, ApiError, Unreachable, ValueError) as failure:
            _log.info("cannot take places ahead", why=str(failure))
            self._held, self._given, self._returned, self._failed = {}, [], set(), True
        finally:
            self._is_writing = False

    def _rates(self) -> Mapping[str, float]:
        """Return the rates of pods per second by version; empty while few come."""
        now = self._clock.monotonic()
        while self._came and self._came[0][0] <= now - WINDOW_SECONDS:
            self._came.popleft()
        if len(self._came) < MANY:
            return {}
        seconds = max(now - self._came[0][0], LEAST_SECONDS)  # a storm has its pace from its beginning on
        return {version: count / seconds for version, count in Counter(one for _, one in self._came).items()}

    def _let_go(self) -> None:
        """Mark places for return with the next write: all of them if no pod comes, those that are too old, and those
        beyond what is left for other replicas, except for the next few pods."""
        now, left = self._clock.monotonic(), self._left()
        idle = not self._came or self._came[-1][0] <= now - IDLE_SECONDS
        lately = Counter(version for since, version in self._came if since > now - LAST_SECONDS)
        for subset, held in self._held.items():
            most = max(left.get(subset, len(held)), lately[subset[0]])
            while held and (idle or held[0].until <= now or len(held) > most):
                self._returned.add(held.popleft().key)
        self._held = {subset: held for subset, held in self._held.items() if held}

    def _left(self) -> Mapping[_Subset, int]:
        """Return the number of free places of each subset."""
        books = self._books().items()
        return {(version, entry.name): max(entry.missing_replicas, 0) for version, book in books for entry in book}

    def _books(self) -> Mapping[str, Book]:
        spread = self._ledger.known()
        return {} if spread is None else spread.status.versioned_subset_statuses

    def _is_due(self) -> bool:
        """Return whether a write is needed now."""
        books = self._books()
        if self._returned or (self._given and not self._held):
            return True
        if any(2 * len(self._held.get(subset, ())) <= wanted for subset, wanted in self._wanted(books)):
            return True
        left = self._left()  # where there is none, others wait until they know who has the last places
        return any(left.get(given.subset) == 0 for given in self._given)

    def _wanted(self, books: Mapping[str, Book]) -> Iterator[tuple[_Subset, int]]:
        """Yield the number of places to hold of each open subset, in their order."""
        for version, rate in self._rates().items():
            count = int(rate * AHEAD_SECONDS)
            for entry in books.get(version, ()):
                if entry.schedulable and entry.missing_replicas == UNLIMITED:
                    break
                subset = version, entry.name
                left = max(entry.missing_replicas, 0) + len(self._held.get(subset, ()))
                if entry.schedulable and count > 0 and left >= SHARE:
                    yield subset, min(count, left // SHARE)
                    count -= left // SHARE

    def _write(self, spread: WorkloadSpread, books: Books) -> _Written:
        """Bring the books in line with what this replica knows, and take what is lacking."""
        del spread
        wanted, written = dict(self._wanted(books)), _Written([], list(self._given), set(self._returned))
        until, now = self._clock.monotonic() + FRESH_SECONDS, self._clock.now().replace(microsecond=0)
        for version, book in books.items():
            for place, entry in enumerate(book):
                subset = version, entry.name
                lacking = wanted.get(subset, 0) - len(self._held.get(subset, ()))
                taken = [f"{self._own}{self._entropy.uuid()}" for _ in range(lacking)]
                written.taken.extend((subset, _Place(key, until)) for key in taken)
                changed = with_places(
                    entry,
                    taken=taken,
                    given={given.key: given.pod for given in written.given if given.subset == subset},
                    returned=written.returned,
                    now=now,
                )
                book[place] = with_places(changed, taken=self._left_to_others(changed), now=now) if taken else changed
        return written

    def _left_to_others(self, entry: SubsetStatus) -> list[str]:
        """Return keys that give the last places of a subset to other active replicas, so that no replica needs a write
        for each of them."""
        now = self._clock.monotonic()
        others = sorted(own for own, since in self._others.items() if since > now - AHEAD_SECONDS)
        if not 0 < entry.missing_replicas <= LAST or not others:
            return []
        return [f"{others[turn % len(others)]}{self._entropy.uuid()}" for turn in range(entry.missing_replicas)]

    def _settle(self, written: _Written) -> None:
        """Apply what was written to the memory of this replica."""
        for subset, place in written.taken:
            self._held.setdefault(subset, deque()).append(place)
        self._given = self._given[len(written.given) :]
        self._returned -= written.returned
