"""The objects of one resource: most are rendered from templates when they are read, the rest is stored."""

from array import array
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from flotilla_common.api.resources import Resource
from tests.testkit.documents import Json

HISTORY = 2000
"""Events that are kept for watches that begin with an earlier version."""

Key = tuple[str, str]
"""Namespace and name."""


class Versions:
    """The resourceVersions of all objects."""

    def __init__(self) -> None:
        self.last = 1

    def next(self) -> int:
        """Return a new one."""
        self.last += 1
        return self.last


class Source(Protocol):
    """Objects that exist from the beginning, by their number."""

    def __len__(self) -> int: ...

    def key(self, number: int) -> Key:
        """Return namespace and name."""
        ...

    def render(self, number: int, version: int, changes: int) -> bytes:
        """Return the object after this number of changes."""
        ...


class Event(NamedTuple):
    """A change, as a line of a watch."""

    version: int
    key: Key
    line: bytes


class Expired(Exception):
    """The history of the version is gone."""


class Page(NamedTuple):
    """A part of the objects, and where the next part begins; 0 at the end."""

    bodies: list[bytes]
    next: int


class Collection:
    """The objects of one resource, in the order of their creation."""

    def __init__(self, resource: Resource, versions: Versions, source: Source | None = None) -> None:
        self.resource = resource
        self.watchers: list[Callable[[Event], None]] = []
        self._source = source
        self._version_source = versions
        count = len(source) if source is not None else 0
        self._keys: list[Key | None] = [source.key(number) for number in range(count)] if source is not None else []
        self._number = {key: number for number, key in enumerate(self._keys) if key is not None}
        self._versions = array("Q", (versions.next() for _ in range(count)))
        self._changes = array("I", bytes(4 * count))
        self._stored: dict[int, bytes] = {}
        self._history: deque[Event] = deque(maxlen=HISTORY)
        self._forgotten = 0  # the newest version whose event is not in the history any more

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, key: Key) -> bool:
        return key in self._number

    def key(self, number: int) -> Key | None:
        """Return the key of the object with this number, or None if it is gone."""
        return self._keys[number]

    def get(self, key: Key) -> bytes | None:
        """Return an object, or None."""
        number = self._number.get(key)
        return None if number is None else self._body(number)

    def page(self, start: int, limit: int, wanted: Callable[[Key], bool]) -> Page:
        """Return at most `limit` wanted objects from a position on; 0 means all."""
        bodies: list[bytes] = []
        for number in range(start, len(self._keys)):
            key = self._keys[number]
            if key is None or not wanted(key):
                continue
            if limit and len(bodies) == limit:
                return Page(bodies, number)
            bodies.append(self._body(number))
        return Page(bodies, 0)

    def put(self, key: Key, document: Json) -> bytes:
        """Store a new object or a new version; returns it."""
        version = self._version_source.next()
        body = msgspec.json.encode(document | {"metadata": document["metadata"] | {"resourceVersion": str(version)}})
        kind = "MODIFIED"
        number = self._number.get(key)
        if number is None:
            kind, number = "ADDED", self._add(key)
        self._versions[number] = version
        self._stored[number] = body
        self._notify(kind, version, key, body)
        return body

    def remove(self, key: Key) -> bytes:
        """Delete an object; returns its last version. Raises KeyError."""
        number = self._number.pop(key)
        version = self._versions[number] = self._version_source.next()
        body = self._body(number)
        if number in self._stored:
            document = msgspec.json.decode(self._stored.pop(number))
            document["metadata"]["resourceVersion"] = str(version)
            body = msgspec.json.encode(document)
        self._keys[number] = None
        self._notify("DELETED", version, key, body)
        return body

    def change(self, number: int) -> int:
        """Change an object that is rendered; returns its new version, or 0 for one that is stored or gone."""
        key = self._keys[number]
        if key is None or number in self._stored:
            return 0
        version = self._versions[number] = self._version_source.next()
        self._changes[number] += 1
        self._notify("MODIFIED", version, key, self._body(number))
        return version

    def since(self, version: int) -> list[Event]:
        """Return the events after a version. Raises Expired if some of them are gone."""
        if version < self._forgotten:
            raise Expired
        return [event for event in self._history if event.version > version]

    def _add(self, key: Key) -> int:
        self._keys.append(key)
        self._versions.append(0)
        self._changes.append(0)
        self._number[key] = len(self._keys) - 1
        return len(self._keys) - 1

    def _body(self, number: int) -> bytes:
        stored = self._stored.get(number)
        if stored is not None:
            return stored
        assert self._source is not None
        return self._source.render(number, self._versions[number], self._changes[number])

    def _notify(self, kind: str, version: int, key: Key, body: bytes) -> None:
        if len(self._history) == HISTORY:
            self._forgotten = self._history[0].version
        event = Event(version, key, b'{"type":"%s","object":%s}\n' % (kind.encode(), body))
        self._history.append(event)
        for watcher in self.watchers:
            watcher(event)
