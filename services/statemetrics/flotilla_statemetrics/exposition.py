"""Serves the page that Prometheus scrapes: all metrics of the objects of one moment.

The objects are taken from the mirror in one step, between two changes. Their text is written in a thread, so that the
mirror continues meanwhile; concurrent scrapes are answered one after the other. It does not use prometheus_client
because of its cost: a hundred thousand series take a quarter of the time here. The format is that of
https://prometheus.io/docs/instrumenting/exposition_formats, and a test reads it back with prometheus_client.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import structlog
from aiohttp import web
from prometheus_client import Histogram

from flotilla_common.api.meta import Object
from flotilla_common.clock import Clock
from flotilla_common.mirror.mirror import Mirror
from flotilla_statemetrics.families import AnyKind, Family, Labels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_SERIES = 100
"""The limit of series per metric and object: its first containers, subsets, conditions or reserved ordinals."""

MOST_CHARACTERS = 256
"""The limit of a label value, in characters; longer values are cut."""

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Snapshot = Sequence[tuple[AnyKind, Sequence[Object]]]
"""The objects of each kind."""


SECONDS = Histogram("flotilla_statemetrics_scrape_seconds", "Time to write the metrics of all objects.")


class Page:
    """Answers scrapes from the tables of a mirror."""

    def __init__(self, mirror: Mirror, kinds: Sequence[AnyKind], clock: Clock) -> None:
        self._mirror = mirror
        self._tables = [(kind, mirror.add(kind.resource, kind.type)) for kind in kinds]
        self._clock = clock
        self._scraping = asyncio.Lock()
        self.synced = False
        """True once the tables hold all existing objects."""

    def snapshot(self) -> Snapshot:
        """Return the objects of this moment, without those whose newest version cannot be decoded."""
        mirror = self._mirror
        return [
            (kind, [one for one in table if not mirror.is_undecodable(kind.resource, one.metadata.uid)])
            for kind, table in self._tables
        ]

    async def answer(self, _: web.Request) -> web.Response:
        """Return the page; 503 until the tables are complete, so that no series seems to have ended."""
        if not self.synced:
            return web.Response(text="not all objects have been read yet\n", status=503)
        async with self._scraping:
            began = self._clock.monotonic()
            body = await asyncio.to_thread(text_of, self.snapshot())
            SECONDS.observe(self._clock.monotonic() - began)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def text_of(snapshot: Snapshot) -> bytes:
    """Return the text of all metrics of these objects. It touches nothing else, so it may run in a thread."""
    return "".join(_lines(snapshot)).encode(errors="replace")


def _lines(snapshot: Snapshot) -> Iterator[str]:
    for kind, objects in snapshot:
        named = [(_identity(kind, obj), obj) for obj in objects]
        for family in kind.families:
            yield f"# HELP {family.name} {family.help}\n# TYPE {family.name} gauge\n"
            for identity, obj in named:
                yield from _of_object(family, identity, obj)


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
