"""Records what clients of a cluster see, in order: some resources, listed and watched.

Scenarios wait on the record instead of polling, and look back through it: that no moment had fewer than five available
pods can only be proven by watching all the time.
"""

import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import NamedTuple, Self

from flotilla_common.api.resources import Resource
from tests.support.reflector import Reflector, Source
from tests.testkit.documents import Json

Key = tuple[str, str, str]  # kind, namespace, name


class Event(NamedTuple):
    """One event of a watch, and when it arrived (seconds, monotonic)."""

    type: str
    object: Json
    at: float


def key(document: Json) -> Key:
    """Return the key of an object in the record."""
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


class Recorder:
    """Some resources in one namespace or in all; the newest state of every object, and all events."""

    def __init__(self, source: Source, *resources: Resource, namespace: str = "") -> None:
        self.objects: dict[Key, Json] = {}
        self.events: list[Event] = []
        self._changed = threading.Condition()
        self._failures: list[str] = []
        self._unlisted = {resource.kind for resource in resources}
        self._reflectors = [Reflector(source, resource, self, namespace) for resource in resources]

    def __enter__(self) -> Self:
        for reflector in self._reflectors:
            reflector.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reflector in self._reflectors:
            reflector.stop()
        assert not self._failures, self._failures

    def begun(self) -> bool:
        """Report whether everything is watched: later events are recorded step by step."""
        return not self._unlisted

    def listed(self, kind: str, documents: list[Json]) -> None:
        """Record a LIST of a kind: additions, changes and removals become events."""
        found = {key(document): document for document in documents}
        for where, known in list(self.objects.items()):
            if where[0] == kind and where not in found:
                self.happened("DELETED", known)
        for where, document in found.items():
            known = self.objects.get(where)
            if known is None or known["metadata"]["resourceVersion"] != document["metadata"]["resourceVersion"]:
                self.happened("MODIFIED" if known else "ADDED", document)
        with self._changed:
            self._unlisted.discard(kind)
            self._changed.notify_all()

    def happened(self, change: str, document: Json) -> None:
        """Record an event of a watch."""
        with self._changed:
            self.events.append(Event(change, document, time.monotonic()))
            if change == "DELETED":
                self.objects.pop(key(document), None)
            else:
                self.objects[key(document)] = document
            self._changed.notify_all()

    def failed(self, reason: str) -> None:
        """Record that a resource is no longer followed, so that waiters fail with the reason."""
        with self._changed:
            self._failures.append(reason)
            self._changed.notify_all()

    def until(self, check: Callable[[], bool], seconds: float) -> bool:
        """Wait until the check holds, looking after each event; False when time is up."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not check():
                assert not self._failures, self._failures
                rest = deadline - time.monotonic()
                if rest <= 0:
                    return False
                self._changed.wait(min(rest, 0.5))  # some checks need more than the record
            return True

    def moments(self, kind: str, namespace: str, since: int = 0) -> Iterator[dict[str, Json]]:
        """Yield all objects of a kind in a namespace by name, after each event from `since` on."""
        state: dict[str, Json] = {}
        for number, event in enumerate(list(self.events)):
            found, where, name = key(event.object)
            if (found, where) != (kind, namespace):
                continue
            state.pop(name, None)
            if event.type != "DELETED":
                state[name] = event.object
            if number >= since:
                yield dict(state)
