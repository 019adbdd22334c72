"""Putting what is injected into the pod's own lists (sidecarset.md §6.12)."""

from collections.abc import Iterable, Sequence

from flotilla_common.api.documents import Json, mappings, sequence, text
from flotilla_common.api.kinds.sidecarset.types import BEFORE_APP

Placed = tuple[str, Json]
"""Where a container goes (podInjectPolicy), and the container."""


def merged_containers(own: object, placed: Sequence[Placed]) -> list[Json]:
    """The pod's containers with the others: one of a name that is there takes its place, the rest goes before or behind
    them all."""
    names = {text(one.get("name")) for one in mappings(own)}
    replacing = {text(one.get("name")): one for _, one in placed if text(one.get("name")) in names}
    kept = [replacing.get(text(one.get("name")), one) for one in mappings(own)]
    new = [(policy, one) for policy, one in placed if text(one.get("name")) not in names]
    before = [one for policy, one in new if policy == BEFORE_APP]
    return [*before, *kept, *(one for policy, one in new if policy != BEFORE_APP)]


def by_name(placed: Iterable[Placed]) -> list[Placed]:
    """Sorted by the names of the containers."""
    return sorted(placed, key=lambda one: text(one[1].get("name")))


def with_missing(own: object, more: Iterable[Json]) -> list[Json]:
    """The pod's volumes, and of the others those of names that it does not have."""
    kept = sequence(own)
    names = {text(one.get("name")) for one in mappings(kept)}
    return [*kept, *(one for one in _unique(more) if text(one.get("name")) not in names)]


def pull_secrets(own: object, more: Iterable[Json]) -> list[Json]:
    """The pod's, then the others, each name once."""
    return _unique([*mappings(own), *more])


def _unique(items: Iterable[Json]) -> list[Json]:
    found: dict[str, Json] = {}
    for one in items:
        found.setdefault(text(one.get("name")), one)
    return list(found.values())
