"""Writes the text that Prometheus reads, from the objects of one moment.

It does not use prometheus_client because of its cost: a hundred thousand series take a quarter of the time here. The
format is that of https://prometheus.io/docs/instrumenting/exposition_formats, and a test reads it back with
prometheus_client.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import structlog

from flotilla_common.api.meta import Object
from flotilla_statemetrics.families import AnyKind, Family, Labels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_SERIES = 100
"""The limit of series per metric and object: its first containers, subsets, conditions or reserved ordinals."""

MOST_CHARACTERS = 256
"""The limit of a label value, in characters; longer values are cut."""

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Snapshot = Sequence[tuple[AnyKind, Sequence[Object]]]
"""The objects of each kind."""


def text_of(snapshot: Snapshot) -> bytes:
    """Return the text of all metrics of these objects. It touches nothing else, so it may run in a thread."""
    return "".join(_lines(snapshot)).encode(errors="replace")


def _lines(snapshot: Snapshot) -> Iterator[str]:
    for kind, objects in snapshot:
        named = [(_identity(kind, one), one) for one in objects]
        for family in kind.families:
            yield f"# HELP {family.name} {family.help}\n# TYPE {family.name} gauge\n"
            for identity, one in named:
                yield from _of_object(family, identity, one)


def _of_object(family: "Family[Object]", identity: str, obj: Object) -> Iterable[str]:
    """Return the lines of one object; none if a field cannot be read, so that others keep their metrics."""
    try:
        return _written(family, identity, obj)
    except ValueError:
        return ()
    except Exception:  # noqa: BLE001 - the metrics of all other objects depend on it
        name = f"{obj.metadata.namespace}/{obj.metadata.name}"
        structlog.get_logger().exception("a metric cannot be read", metric=family.name, object=name)
        return ()


def _written(family: "Family[Object]", identity: str, obj: Object) -> Iterable[str]:
    lines: dict[str, int] = {}  # by labels, so that none comes twice
    for labels, value in islice(family.read(obj), MOST_SERIES):
        lines.setdefault(f"{family.name}{{{identity}{_further(labels)}}}", value)
    return [f"{labels} {value}\n" for labels, value in lines.items()]


def _identity(kind: AnyKind, obj: Object) -> str:
    """Return the labels that identify the object."""
    names = [(label, obj.metadata.name) for label in kind.labels]
    place = [("namespace", obj.metadata.namespace)] if kind.resource.namespaced else []
    return ",".join(_label(*one) for one in (*place, *names))


def _further(labels: Labels) -> str:
    return "".join(f",{_label(*one)}" for one in labels)


def _label(name: str, value: str) -> str:
    return f'{name}="{value[:MOST_CHARACTERS].translate(_ESCAPES)}"'
