"""Places of one WorkloadSpread, as this process takes and returns them (workloadspread.md §5.3 and §5.5)."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from prometheus_client import Counter

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.kinds.workloadspread.book import (
    awaiting,
    chosen,
    has_room,
    opened,
    place_of,
    uses_percent,
    with_pod,
    with_pod_again,
    without_pod,
)
from flotilla_common.api.kinds.workloadspread.types import UNLIMITED, Matched, SubsetStatus, WorkloadSpread
from flotilla_common.clock import Clock, Entropy
from flotilla_webhook.spreading.peers import Grant, LoanRequest, Peers
from flotilla_webhook.spreading.places_ahead import TICK_SECONDS, Books, BookWriter, PlacesAhead
from flotilla_webhook.spreading.subsets import try_patch

AWAITED_SECONDS = 1.5
"""Limit of waiting for places that replicas have taken ahead; after it the pod goes to a later subset."""

PLACES = Counter("flotilla_webhook_places_total", "Places of WorkloadSpreads that pods got.", ["source"])
_AHEAD, _LENT, _BOOK = (PLACES.labels(source) for source in ("ahead", "lent", "book"))


class _Request(msgspec.Struct, frozen=True):
    """A pod that requests a place. Both of its keys are unique among the pods of the book's version."""

    pod: Json
    name: str  # empty where the apiserver will choose one
    token: str
    version: str


class Places:
    """Takes and returns places, each request by itself."""

    def __init__(self, writer: BookWriter, clock: Clock, entropy: Entropy, peers: Peers) -> None:
        self._writer = writer
        self._places_ahead = PlacesAhead(writer, clock, entropy, peers.own)
        self._clock = clock
        self._entropy = entropy
        self._peers = peers

    async def close(self) -> None:
        """Return what was taken ahead."""
        await self._places_ahead.close()

    async def take(self, pod: Json, version: str, replicas: Callable[[], Awaitable[int | None]]) -> Matched | None:
        """Return the place of the pod, or None if no subset has room.

        `replicas` reads the workload's number of replicas if a new book needs it. Raises Gone, ApiError, Unreachable,
        or ValueError if the book cannot be opened or the subset's patch does not apply.
        """
        request = _Request(pod, name_of(pod), self._entropy.uuid(), version)
        if not self._has_place(request):
            self._places_ahead.count_request(version)
        end = self._clock.monotonic() + AWAITED_SECONDS
        while True:
            found = self._without_write(request) or await self._borrow(request)
            if found is None:
                may_wait = self._clock.monotonic() < end
                take = partial(self._take, request=request, replicas=await replicas(), may_wait=may_wait)
                self._places_ahead.hurry()
                found = await self._writer.write(take)
                if found is not None and found.subset:
                    _BOOK.inc()
                found = found or self._without_write(request)
            if found is not None:
                return found if found.subset else None
            await self._clock.sleep(TICK_SECONDS)

    async def lend(self, version: str, subset: str, pod: str) -> Grant | None:
        """Return the place that another replica gets for a pod.

        It is empty if this replica has none to give, and None if it is about to get some.
        """
        given = self._places_ahead.given_to(version, pod)
        if given is not None:  # a repeated request
            return given
        self._places_ahead.count_request(version)
        settled = self._places_ahead.holds(version, subset) or await self._places_ahead.is_settled(version, subset)
        if self._places_ahead.holds(version, subset):
            return self._places_ahead.give(version, subset, pod)
        return Grant() if settled else None

    async def give(self, version: str, subset: str, name: str) -> bool:
        """Give a pod's place back; return whether that was stored. Raises Gone, ApiError, Unreachable, ValueError."""

        def give(spread: WorkloadSpread, books: Books) -> bool:
            del spread
            # Without an open book no pod has a place: one that is opened later begins with all of them.
            changed = without_pod(books.get(version, []), subset, name, self._clock.now().replace(microsecond=0))
            if changed is not None:
                books[version] = changed
            return changed is not None

        return await self._writer.write(give)

    async def restore(self, version: str, subset: str, name: str) -> None:
        """Restore the place of a pod that stays after all. Raises Gone, ApiError, Unreachable, ValueError."""

        def restore(spread: WorkloadSpread, books: Books) -> None:
            del spread
            if version in books:
                books[version] = with_pod_again(books[version], subset, name)

        await self._writer.write(restore)

    def _without_write(self, request: _Request) -> Matched | None:
        """Return a place that needs no write: one taken ahead, or of an unlimited subset; None if a write is needed.

        Raises ValueError if the subset's patch does not apply.
        """
        spread = self._writer.known()
        if spread is None or _is_known(spread, request):
            return None
        given = self._places_ahead.given_to(request.version, request.name)
        if given is not None:  # a repeated request
            return _granted(spread, given)
        place = self._best(spread, request)
        if place is None:
            return None
        if place.missing_replicas == UNLIMITED:
            return Matched(name=spread.metadata.name, subset=place.name)
        if not self._places_ahead.holds(request.version, place.name):
            return None
        try_patch(request.pod, spread, place.name)
        _AHEAD.inc()
        return _granted(spread, self._places_ahead.give(request.version, place.name, request.name))

    async def _borrow(self, request: _Request) -> Matched | None:
        """Return a place from another replica, or one that needs no write once no other has any.

        Returns None if a write is needed. Raises ValueError if the subset's patch does not apply.
        """
        found: Matched | None = None
        while found is None and (spread := self._writer.known()) is not None:
            subset, replica = self._lender(spread, request)
            if not replica:
                return None
            try_patch(request.pod, spread, subset)
            question = LoanRequest(spread.metadata.uid, request.version, subset, request.name)
            grant = await self._peers.ask(replica, question)
            if grant is not None and grant.subset:
                _LENT.inc()
                return _granted(spread, grant)
            if grant is not None:
                self._places_ahead.mark_empty(spread, request.version, subset, replica)
            found = self._without_write(request)
        return found

    def _lender(self, spread: WorkloadSpread, request: _Request) -> tuple[str, str]:
        """Return the best subset for the pod, and a replica that may have a place of it to give, or ("", "")."""
        place = None if _is_known(spread, request) else self._best(spread, request)
        lenders = [] if place is None else self._places_ahead.lenders(request.version, place)
        found = ((place.name, one) for one in lenders if place is not None and self._peers.answers(one))
        return next(found, ("", ""))

    def _has_place(self, request: _Request) -> bool:
        """Report whether the pod has a place already, because its request is repeated."""
        spread = self._writer.known()
        known = spread is not None and _is_known(spread, request)
        return known or self._places_ahead.given_to(request.version, request.name) is not None

    def _best(self, spread: WorkloadSpread, request: _Request) -> SubsetStatus | None:
        """Return the first subset that has room for the pod or may have it soon, or None."""
        book = spread.status.versioned_subset_statuses.get(request.version, [])
        return chosen(book, takes=partial(self._may_take, request, may_wait=True))

    def _take(
        self, spread: WorkloadSpread, books: Books, *, request: _Request, replicas: int | None, may_wait: bool
    ) -> Matched | None:
        """Take a place and return it; its subset is empty if no subset has room, and None if that is not certain yet.

        Raises ValueError if the book cannot be opened or the subset's patch does not apply.
        """
        book, name = _book_of(spread, books, request.version, replicas), spread.metadata.name
        for key in (request.name, request.token):
            held = awaiting(book, key)
            if held is not None:  # taken by an earlier request for the pod, or by this one, decided again
                return _matched(name, held, key, request)
        place = chosen(book, request.name, partial(self._may_take, request, may_wait=may_wait))
        if place is None:
            return Matched(name=name)
        if place.missing_replicas == UNLIMITED:
            return Matched(name=name, subset=place.name)
        if not has_room(place) or self._places_ahead.holds(request.version, place.name):
            return None
        try_patch(request.pod, spread, place.name)
        # Of two pods of one name, one of which is leaving, the controller could not see which one has appeared.
        key = request.name if request.name and place_of(book, request.name) is None else request.token
        now = self._clock.now().replace(microsecond=0)
        books[request.version] = with_pod(book, place.name, key, now, request.name)
        return _matched(name, place, key, request)

    def _may_take(self, request: _Request, entry: SubsetStatus, *, may_wait: bool) -> bool:
        """Report whether the subset has room or, if the request may wait, may have room soon."""
        holds = self._places_ahead.holds(request.version, entry.name)
        return has_room(entry) or holds or (may_wait and self._places_ahead.is_awaited(request.version, entry))


def name_of(pod: Json) -> str:
    """Return the name of a pod, "" if the apiserver will choose one."""
    return text(member(pod, "metadata").get("name"))


def _is_known(spread: WorkloadSpread, request: _Request) -> bool:
    """Report whether the book has a pod of this name already."""
    return place_of(spread.status.versioned_subset_statuses.get(request.version, []), request.name) is not None


def _granted(spread: WorkloadSpread, grant: Grant) -> Matched:
    return Matched(name=spread.metadata.name, subset=grant.subset, uid=grant.token)


def _matched(name: str, place: SubsetStatus, key: str, request: _Request) -> Matched:
    return Matched(name=name, subset=place.name, uid=key if key == request.token else "")


def _book_of(spread: WorkloadSpread, books: Books, version: str, replicas: int | None) -> list[SubsetStatus]:
    """Return the book of the version, or a new one.

    Raises ValueError if a new one needs the number of replicas and the caller has not read it, because the book existed
    a moment ago.
    """
    held = books.get(version)
    if held:
        return held
    if replicas is None and uses_percent(spread.spec.subsets):
        raise ValueError(f"the book of WorkloadSpread {spread.metadata.name} was just closed")
    return opened(spread.spec.subsets, replicas or 0, spread.status.subset_statuses)
