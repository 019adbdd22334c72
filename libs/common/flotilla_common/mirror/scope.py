"""The pods that a service needs: those of its kinds of owners and shards, with sidecars, or near its own objects.

Several components of a service share a table, so their needs add up. Namespaces come and go with the objects that need
their pods; the feed of the table follows every change (`bus_sources.py`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.bus.affiliation import ANY, NONE, SIDECARS, Interest, PodLike, affiliation_of, outline
from flotilla_common.mirror.table import Table

MOST_NAMESPACES = 32
"""Namespaces that are followed one by one; with more, all pods are followed."""

Interests = frozenset[Interest]
EVERYTHING: Interests = frozenset({Interest()})


class Near(NamedTuple):
    """Objects in whose namespaces all pods are needed."""

    resource: Resource
    table: Table[Any]
    namespaces: Callable[[Any], Iterable[str]]
    """Returns the namespaces for an object; none if it needs no pods."""


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that one component needs; the parts add up."""

    owners: tuple[str, ...] = ()
    """Pods of owners of these kinds, as tokens (`token_of`), in the shards of this replica."""
    orphans: bool = False
    """Pods without a controller."""
    sidecars: bool = False
    """Pods that the sidecar service works on."""
    near: tuple[Near, ...] = ()


class Scope:
    """The interests in one resource, by group. Those of a group do not overlap: JetStream refuses such filters."""

    def __init__(self) -> None:
        self.whole = False
        """Everything is needed, so there is nothing to select."""
        self.deciding: set[Resource] = set()
        """The resources whose objects decide which namespaces are needed."""
        self._owners: set[str] = set()
        self._buckets: tuple[str, ...] = (ANY,)
        self._orphans = False
        self._sidecars = False
        self._namespaces: Counter[str] = Counter()
        self._listeners: list[Callable[[], None]] = []

    def add(self, needs: Needs | None) -> None:
        """Add the needs of a component, before the first object; None means all objects."""
        if needs is None:
            self.whole = True
            return
        self._owners.update(needs.owners)
        self._orphans = self._orphans or needs.orphans
        self._sidecars = self._sidecars or needs.sidecars
        for near in needs.near:
            self.deciding.add(near.resource)
            near.table.listen(lambda old, new, of=near.namespaces: self._count(old, new, of))

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the groups have changed."""
        self._listeners.append(listener)

    def hold(self, buckets: tuple[str, ...]) -> None:
        """Need only the owners in these buckets (see `buckets_of`)."""
        if buckets != self._buckets:
            self._buckets = buckets
            self._changed()

    def groups(self) -> dict[str, Interests]:
        """Return the interests by group; a group without any is missing."""
        if self.whole:
            return {"all": EVERYTHING}
        owned = {Interest(owner=owner, bucket=bucket) for owner in self._owners for bucket in self._buckets}
        orphans = {Interest(owner=NONE)} if self._orphans else set[Interest]()
        sidecars = {Interest(trait=SIDECARS)} if self._sidecars else set[Interest]()
        named = {Interest(namespace=namespace) for namespace in self._namespaces}
        namespaces = EVERYTHING if len(named) > MOST_NAMESPACES else frozenset(named)
        groups = {"owners": frozenset(owned | orphans), "sidecars": frozenset(sidecars), "namespaces": namespaces}
        return {name: interests for name, interests in groups.items() if interests}

    def _count(self, old: Object | None, new: Object | None, of: Callable[[Any], Iterable[str]]) -> None:
        before = set[str]() if old is None else set(of(old))
        after = set[str]() if new is None else set(of(new))
        if before == after:
            return
        known = set(self._namespaces)
        self._namespaces.update(after - before)
        self._namespaces.subtract(before - after)
        self._namespaces += Counter()  # drops those with no object left
        if set(self._namespaces) != known:
            self._changed()

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()


def covers(interests: Collection[Interest], pod: PodLike) -> bool:
    """Report whether the pod is among the interests."""
    if not interests or Interest() in interests:
        return bool(interests)
    affiliation = affiliation_of(pod)
    return any(interest.covers(pod.metadata.namespace, affiliation) for interest in interests)


def covers_raw(interests: Collection[Interest], raw: bytes | msgspec.Raw) -> bool:
    """Report the same of a pod's JSON, at a tenth of the cost of decoding it."""
    return bool(interests) and covers(interests, outline(raw))
