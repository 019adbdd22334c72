"""Holds what was published of each object, in as few bytes as possible, as there is one entry per object.

An entry has what a tombstone and a move need. Strings that many objects share are kept once.
"""

from collections.abc import Iterator
from sys import intern

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.kube.reflector import HeadMeta

Key = tuple[str, str]
"""Namespace and name."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The state of an object as it was published last."""

    uid: str
    version: str
    generation: int
    ending: str  # of its subject, after namespace and name: whose it is; empty for other kinds than pods


class PublishedObjects:
    """The objects of one resource that this watcher has published and that are not gone."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._entries: dict[Key, Entry] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Entry | None:
        """Return the entry of an object."""
        return self._entries.get(key)

    def put(self, head: HeadMeta, subject: str) -> Key:
        """Remember that the object was published on the subject; return its key."""
        ending = intern(subject.removeprefix(subjects.kube(self._resource, head.namespace, head.name)))
        key = intern(head.namespace), head.name
        self._entries[key] = Entry(head.uid, head.resource_version, head.generation, ending)
        return key

    def pop(self, key: Key) -> HeadMeta | None:
        """Forget the object, and return its head as it was last."""
        entry = self._entries.pop(key, None)
        return None if entry is None else _head(key, entry)

    def head(self, key: Key) -> HeadMeta:
        """Return the head of an object as it was last."""
        return _head(key, self._entries[key])

    def subject(self, key: Key) -> str:
        """Return the subject of an object's last message; empty if it is unknown."""
        entry = self._entries.get(key)
        return "" if entry is None else subjects.kube(self._resource, *key) + entry.ending


def _head(key: Key, entry: Entry) -> HeadMeta:
    namespace, name = key
    return HeadMeta(
        name=name,
        namespace=namespace,
        uid=entry.uid,
        resource_version=entry.version,
        generation=entry.generation,
    )
