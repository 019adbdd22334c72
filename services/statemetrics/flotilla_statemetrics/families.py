"""Defines metrics: a name, a help text, and the series of one object.

All metrics are gauges. The families of a kind are a table in `kinds/`, built from the few forms in this module.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource

T = TypeVar("T", bound=Object)

Labels = Iterable[tuple[str, str]]
Series = tuple[Labels, int]
"""Labels besides the identity of the object, and the value."""

STATUSES = ("true", "false", "unknown")
"""The statuses of a condition: it has one series for each."""

MOST_LABELS = 100
"""The limit of labels per object; the first ones by key are used."""

_UNFIT = re.compile(r"[^a-zA-Z0-9_]")
_HUMP = re.compile(r"([a-z0-9])([A-Z])")


class Family(msgspec.Struct, Generic[T], frozen=True):
    """One metric of a kind. `read` returns the series of an object; a ValueError means none."""

    name: str
    help: str
    read: Callable[[T], Iterable[Series]]


class StateKind(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A kind of objects with metrics."""

    resource: Resource
    type: type[T]
    labels: tuple[str, ...]
    """The labels that hold the object's name."""
    families: tuple[Family[T], ...]


AnyKind = StateKind[Any]


def number(name: str, text: str, read: Callable[[T], int | None]) -> Family[T]:
    """Return a family with one number per object, or none."""

    def series(obj: T) -> Iterator[Series]:
        if (value := read(obj)) is not None:
            yield (), value

    return Family(name, text, series)


def word(name: str, text: str, label: str, read: Callable[[T], str]) -> Family[T]:
    """Return a family with a word as a label and the value 1; no series if the word is empty."""

    def series(obj: T) -> Iterator[Series]:
        if value := read(obj):
            yield ((label, value),), 1

    return Family(name, text, series)


def created(name: str) -> Family[Any]:
    """Return a family with the creation time of objects, in seconds since 1970."""

    def read(obj: Object) -> int | None:
        moment = obj.metadata.creation_timestamp
        return None if moment is None else int(moment.timestamp())

    return number(name, "Unix creation timestamp.", read)


def generation(name: str) -> Family[Any]:
    """Return a family with the generation of objects."""
    return number(name, "The generation of the desired state.", lambda obj: obj.metadata.generation)


def object_labels(name: str) -> Family[Any]:
    """Return a family with the labels of objects."""

    def read(obj: Object) -> Iterator[Series]:
        yield prometheus_labels(obj.metadata.labels), 1

    return Family(name, "Kubernetes labels converted to Prometheus labels.", read)


def conditions(name: str, read: Callable[[T], Iterable["Condition"]]) -> Family[T]:
    """Return a family with the conditions of objects."""

    def series(obj: T) -> Iterator[Series]:
        for condition in read(obj):
            for status in STATUSES:
                yield (("condition", condition.type), ("status", status)), int(condition.status.lower() == status)

    return Family(name, "The current conditions.", series)


class Condition(Protocol):
    """A condition of any kind of object."""

    @property
    def type(self) -> str: ...

    @property
    def status(self) -> str: ...


@lru_cache(maxsize=4096)  # objects of a cluster share the keys of their labels
def _prometheus_name(key: str) -> str:
    """Return the Prometheus name of a label key."""
    return "label_" + _HUMP.sub(r"\1_\2", _UNFIT.sub("_", key)).lower()


def prometheus_labels(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each label, sorted by label key, by the rules of kube-state-metrics.

    `app.kubernetes.io/name` becomes `label_app_kubernetes_io_name`, and `teamName` becomes `label_team_name`. If two
    labels get the same name, both get a number: `label_a_b_conflict1`, `label_a_b_conflict2`.
    """
    keys = sorted(labels)[:MOST_LABELS]
    wanted = Counter(map(_prometheus_name, keys))
    taken = {name for name, count in wanted.items() if count == 1}
    numbers: Counter[str] = Counter()
    for key in keys:
        name = _prometheus_name(key)
        if wanted[name] > 1:
            name = _free(name, numbers, taken)
            taken.add(name)
        yield name, labels[key]


def _free(name: str, numbers: Counter[str], taken: set[str]) -> str:
    """Return the next numbered name that no other label has."""
    while True:
        numbers[name] += 1
        numbered = f"{name}_conflict{numbers[name]}"
        if numbered not in taken:
            return numbered
