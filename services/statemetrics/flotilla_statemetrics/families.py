"""Defines metrics: a name, a help text, and the series of one object.

All metrics are gauges. The families of a kind are a table in `kinds/`, built from the few forms in this module.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_statemetrics.labels import converted

T = TypeVar("T", bound=Object)

Labels = Iterable[tuple[str, str]]
Series = tuple[Labels, int]
"""Labels besides the identity of the object, and the value."""

STATUSES = ("true", "false", "unknown")
"""The statuses of a condition: it has one series for each."""


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
        if found := read(obj):
            yield ((label, found),), 1

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
        yield converted(obj.metadata.labels), 1

    return Family(name, "Kubernetes labels converted to Prometheus labels.", read)


def conditions(name: str, read: Callable[[T], Iterable["Condition"]]) -> Family[T]:
    """Return a family with the conditions of objects."""

    def series(obj: T) -> Iterator[Series]:
        for one in read(obj):
            for status in STATUSES:
                yield (("condition", one.type), ("status", status)), int(one.status.lower() == status)

    return Family(name, "The current conditions.", series)


class Condition(Protocol):
    """A condition of any kind of object."""

    @property
    def type(self) -> str: ...

    @property
    def status(self) -> str: ...
