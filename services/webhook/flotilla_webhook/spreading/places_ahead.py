"""Takes places of one WorkloadSpread ahead, so that pods need not wait for a write of the book (ADR 29).

While many pods come, a replica takes more places than it has pods for. They are in the book under its own keys until a
later write names the pods that have got them. A replica without places asks those that have some. Places that are left
when pods stop coming are returned; those of a replica that dies are free again after the timeout of pods that never
appear.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Set
from datetime import timedelta
from typing import NamedTuple

import structlog

from flotilla_common.api.documents import Json
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.workloadspread.book import AHEAD, Book, stored, token_of, with_places
from flotilla_common.api.kinds.workloadspread.types import UNLIMITED, WORKLOAD_SPREAD, SubsetStatus, WorkloadSpread
from flotilla_common.clock import Clock, Entropy
from flotilla_webhook.spreading.peers import Grant
from flotilla_webhook.status_writer import Gone, StatusSchema, StatusWriter
from flotilla_webhook.taking_ahead import TakenAhead, TakingAhead

Books = dict[str, list[SubsetStatus]]
"""Books by version."""

BookWriter = StatusWriter[WorkloadSpread, Books]

AHEAD_SECONDS = 0.5
"""Seconds for which the places of a replica should last at the current rate.

A replica takes more when it has used half of them, because a write may be slow or conflict.
"""

FRESH_SECONDS = 5.0
"""Age up to which a place that was taken ahead is given to a pod. The controller drops it after thirty seconds."""

TICK_SECONDS = 0.02
"""Interval between two checks for something to write."""

_CHECKS, _CHECK_SECONDS = 100, 0.002
"""The number of checks of a write that takes places, and the seconds between them, while another replica waits."""

_KEY = re.compile(rf"{AHEAD}([0-9a-f]+)/")
"""The prefix of a key, strict because the replica's name goes into a subject, and users may edit a status."""

_Subset = tuple[str, str]
"""The version of a book, and the name of one of its subsets."""

_log = structlog.get_logger()


def _draft(spread: WorkloadSpread) -> Books:
    return {version: list(book) for version, book in spread.status.versioned_subset_statuses.items()}


def _changes(spread: WorkloadSpread, books: Books) -> Json:
    before = spread.status.versioned_subset_statuses
    changed = {version: book for version, book in books.items() if book != before.get(version)}
    written = {version: [stored(entry) for entry in book] for version, book in changed.items()}
    return {"versionedSubsetStatuses": written} if written else {}


BOOKS_STATUS: StatusSchema[WorkloadSpread, Books] = StatusSchema(WORKLOAD_SPREAD, WorkloadSpread, _draft, _changes)


class _Given(NamedTuple):
    """A place that was given to a pod, until the book names the pod."""

    subset: _Subset
    place: TakenAhead
    pod: str  # its name, or its token


class _Written(NamedTuple):
    """The changes of one write, applied to this replica's records once it is stored."""

    taken: list[tuple[_Subset, TakenAhead]]
    given: list[_Given]


class PlacesAhead(TakingAhead[WorkloadSpread, Books]):
    """The places that this replica has taken ahead."""

    def __init__(self, writer: BookWriter, clock: Clock, entropy: Entropy, replica: str) -> None:
        super().__init__(writer, clock, entropy, f"{AHEAD}{replica}/")  # the rate is by the version of a book
        self._held: dict[_Subset, deque[TakenAhead]] = {}  # the oldest first
        self._given: list[_Given] = []
        self._seen: Mapping[str, Book] = {}  # the books at the last check
        self._stored: Set[str] = frozenset()  # the keys of this replica in these books
        self._empty: set[tuple[str, str, str]] = set()  # versions, subsets, and replicas without a place to give
        self._taking: Set[_Subset] = frozenset()  # the subsets of which the current write takes places

    def holds(self, version: str, subset: str) -> bool:
        """Report whether a place can be given to a pod at once."""
        held = self._held.get((version, subset))
        return bool(held) and held[0].until > self._clock.monotonic()

    def give(self, version: str, subset: str, pod: str) -> Grant:
        """Give a place to a pod. The book will list the pod by its name, or by the token of the place."""
        place = self._held[version, subset].popleft()
        token = token_of(place.key)
        self._given.append(_Given((version, subset), place, pod or token))
        return Grant(subset, token)

    def given_to(self, version: str, pod: str) -> Grant | None:
        """Return the place that the pod of this name has just got, or None."""
        now = self._clock.monotonic()  # one that could not be written down may have timed out since
        found = (given for given in self._given if pod and given.pod == pod and given.place.until > now)
        return next((Grant(one.subset[1], token_of(one.place.key)) for one in found if one.subset[0] == version), None)

    async def is_settled(self, version: str, subset: str) -> bool:
        """Wait for a write that takes places of the subset; return whether its outcome is known in time.

        Other replicas may see the outcome earlier, by their watches.
        """
        for _ in range(_CHECKS):
            if (version, subset) not in self._taking:
                return True
            await self._clock.sleep(_CHECK_SECONDS)
        return False

    def lenders(self, version: str, entry: SubsetStatus) -> list[str]:
        """Return the other replicas that may have places of the subset to give."""
        self._refresh()
        found = (_KEY.match(key) for key in self._fresh(entry) if not key.startswith(self._own))
        names = {match[1] for match in found if match is not None}
        return sorted(name for name in names if (version, entry.name, name) not in self._empty)

    def mark_empty(self, asked: WorkloadSpread, version: str, subset: str, replica: str) -> None:
        """Record that a replica has no place of the subset to give.

        It gets new ones only by a write of the book, so this holds as long as the book is the one that it was `asked`
        about.
        """
        if self._writer.known() is asked:
            self._empty.add((version, subset, replica))

    def is_awaited(self, version: str, entry: SubsetStatus) -> bool:
        """Report whether any replica may hold places of the subset.

        Until it gives or returns them, it is not certain that the subset is full.
        """
        given = {given.place.key for given in self._given}
        own = any(key.startswith(self._own) and key not in given for key in self._fresh(entry))
        return own or bool(self.lenders(version, entry))

    async def _run(self) -> None:
        """Take places ahead while many pods come, write down their pods, and return the rest."""
        self._has_failed = False
        while not self._has_failed and (self._rate.rates() or self._held or self._given or self._has_unclaimed()):
            await self._sync()
            await self._clock.sleep(TICK_SECONDS)

    async def _sync(self) -> None:
        """Write what is due. After a failure nothing is held: places in the book time out."""
        self._release()
        if self._is_writing or not self._is_due():
            return
        self._is_writing = True
        try:
            await self._writer.write(self._write, self._settle)
        except (Gone, ApiError, Unreachable, ValueError) as failure:
            _log.info("cannot take places ahead", why=str(failure))
            self._held, self._has_failed = {}, True
            if isinstance(failure, Gone):
                self._given = []
        finally:
            self._is_writing, self._taking = False, frozenset()

    def _release(self) -> None:
        """Release the places that are too old, or all of them if no pod comes. The next write returns them."""
        now = self._clock.monotonic()
        for held in self._held.values():
            while held and (self._rate.is_idle or held[0].until <= now):
                held.popleft()
        self._held = {subset: held for subset, held in self._held.items() if held}

    def _has_unclaimed(self) -> bool:
        """Report whether the books have places of this replica that it neither holds nor has given to a pod."""
        self._refresh()
        return not self._stored <= self._known()

    def _known(self) -> Set[str]:
        """Return the keys of the places that this replica holds or has given to pods."""
        held = (place for places in self._held.values() for place in places)
        return {place.key for place in (*held, *(given.place for given in self._given))}

    def _fresh(self, entry: SubsetStatus) -> list[str]:
        """Return the keys of places that were taken ahead not long ago."""
        dead = self._clock.now() - timedelta(seconds=FRESH_SECONDS)
        return [key for key, since in entry.creating_pods.items() if key.startswith(AHEAD) and since > dead]

    def _refresh(self) -> None:
        """Read the books if they have changed."""
        books = self._books()
        if books is not self._seen:
            self._seen, self._empty = books, set()
            keys = (key for book in books.values() for entry in book for key in entry.creating_pods)
            self._stored = {key for key in keys if key.startswith(self._own)}

    def _books(self) -> Mapping[str, Book]:
        spread = self._writer.known()
        return {} if spread is None else spread.status.versioned_subset_statuses

    def _is_due(self) -> bool:
        """Report whether a write is needed now."""
        if self._has_unclaimed() or (self._given and not self._held):
            return True
        wanted = self._wanted(self._books())
        return any(2 * len(self._held.get(subset, ())) <= count for subset, count in wanted)

    def _wanted(self, books: Mapping[str, Book]) -> Iterator[tuple[_Subset, int]]:
        """Yield the number of places to hold of each open subset, in their order."""
        for version, rate in self._rate.rates().items():
            count = int(rate * AHEAD_SECONDS)
            for entry in books.get(version, ()):
                if entry.schedulable and entry.missing_replicas == UNLIMITED:
                    break
                subset = version, entry.name
                left = max(entry.missing_replicas, 0) + len(self._held.get(subset, ()))
                if entry.schedulable and count > 0 and left > 0:
                    yield subset, min(count, left)
                    count -= left

    def _write(self, spread: WorkloadSpread, books: Books) -> _Written:
        """Update the books to this replica's records, and take what is lacking."""
        del spread
        known, written = self._known(), _Written([], list(self._given))
        wanted, now = dict(self._wanted(books)), self._clock.now().replace(microsecond=0)
        until = self._clock.monotonic() + FRESH_SECONDS
        for version, book in books.items():
            for place, entry in enumerate(book):
                subset = version, entry.name
                lacking = wanted.get(subset, 0) - len(self._held.get(subset, ()))
                taken = [f"{self._own}{self._entropy.uuid()}" for _ in range(lacking)]
                written.taken.extend((subset, TakenAhead(key, until)) for key in taken)
                book[place] = with_places(
                    entry,
                    taken=taken,
                    given={given.place.key: given.pod for given in written.given if given.subset == subset},
                    returned={key for key in entry.creating_pods if key.startswith(self._own)} - known,
                    now=now,
                )
        self._taking = {subset for subset, _ in written.taken}
        return written

    def _settle(self, written: _Written) -> None:
        """Apply the stored write to this replica's records."""
        for subset, place in written.taken:
            self._held.setdefault(subset, deque()).append(place)
        self._given = self._given[len(written.given) :]
