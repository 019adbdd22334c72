"""A cache of one resource for the webhook, kept current by its own watch, so that it serves while NATS is down."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec
import structlog

from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, pages
from flotilla_common.kube.reflector import HeadMeta, Reflector, Way
from flotilla_common.mirror.table import version_number

T = TypeVar("T")

_Key = tuple[str, str]  # namespace and name


class _Held(msgspec.Struct, Generic[T], frozen=True):
    version: int
    value: T | None


class Cache(Generic[T]):
    """The objects of one resource, decoded by `read`, as a `Sink` of the watch.

    Objects being deleted, or for which `read` returns None, are excluded.
    """

    def __init__(
        self, resource: Resource, read: Callable[[msgspec.Raw], T | None], needs: Callable[[T], Hashable]
    ) -> None:
        """Create an empty cache. Listeners are called when what `needs` returns has changed, so not for each status."""
        self.resource = resource
        self.known = False
        """Set when the LIST is complete."""
        self.trouble = ""
        """Why the watch does not show changes, or ""."""
        self._read = read
        self._needs = needs
        self.needed: frozenset[Hashable] = frozenset()
        """The needed values of all objects."""
        self._listeners: list[Callable[[], None]] = []
        self._seen = 0  # all versions up to this one are applied
        self._held: dict[_Key, _Held[T]] = {}
        self._listed: dict[_Key, _Held[T]] = {}  # objects of the current LIST

    def values(self) -> list[T]:
        """Return all objects, by namespace and name."""
        held = (self._held[key].value for key in sorted(self._held))
        return [value for value in held if value is not None]

    def get(self, namespace: str, name: str) -> T | None:
        """Return an object, or None."""
        held = self._held.get((namespace, name))
        return None if held is None else held.value

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the needed values have changed."""
        self._listeners.append(listener)

    async def follow(self, api: Api, clock: Clock) -> None:
        """Watch until cancelled."""
        await Reflector(api, self.resource, self, clock).run()

    def take(self, item: bytes) -> None:
        """Apply the present version of an object from elsewhere.

        A version that is older than the known one is ignored, and so is one of an object whose deletion the watch has
        shown.
        """
        key, found = self._decoded(msgspec.Raw(item))
        if key in self._held or found.version > self._seen:
            self._store(key, found)

    def forget(self, namespace: str, name: str) -> None:
        """Remove an object that does not exist at the apiserver."""
        if self._held.pop((namespace, name), None) is not None:
            self._notify()

    async def listing(self, way: Way) -> None:
        self._listed = {}

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        key, found = self._decoded(item)
        self._listed[key] = found

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self._listed.pop((head.namespace, head.name), None)

    async def complete(self, version: str) -> None:
        self._held, self.known, self._seen = self._listed, True, version_number(version)
        self._notify()

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        self._seen = version_number(head.resource_version)
        if kind == "DELETED":
            held = self._held.get((head.namespace, head.name))
            if held is not None and held.version <= self._seen:  # not a later object of this name
                del self._held[head.namespace, head.name]
                self._notify()
        else:
            self._store(*self._decoded(item))

    async def progress(self, version: str) -> None:
        """Ignore bookmarks: they contain no objects."""

    def state(self, trouble: str) -> None:
        """Record the trouble; the cached objects stay until the watch works again."""
        self.trouble = trouble
        if trouble:
            structlog.get_logger().info("cannot watch", resource=self.resource.id, why=trouble)

    def _store(self, key: _Key, found: _Held[T]) -> None:
        held = self._held.get(key)
        if held is None or held.version < found.version:
            self._held[key] = found
            if held is None or self._need(held) != self._need(found):
                self._notify()

    def _decoded(self, item: msgspec.Raw) -> tuple[_Key, _Held[T]]:
        metadata = metadata_of(item)
        value = self._read(item) if metadata.deletion_timestamp is None else None
        return metadata.key, _Held(version_number(metadata.resource_version), value)

    def _need(self, held: _Held[T]) -> Hashable:
        return None if held.value is None else self._needs(held.value)

    def _notify(self) -> None:
        needed = frozenset(self._needs(held.value) for held in self._held.values() if held.value is not None)
        if needed == self.needed:
            return
        self.needed = needed
        for listener in self._listeners:
            listener()


def decoder(kind: type[T]) -> Callable[[msgspec.Raw], T | None]:
    """Return a function that decodes stored objects; those that cannot be decoded are skipped."""

    def decode(item: msgspec.Raw) -> T | None:
        try:
            return msgspec.json.decode(item, type=kind)
        except msgspec.MsgspecError as fault:
            structlog.get_logger().warning(f"cannot read a {kind.__name__}", error=str(fault))
            return None

    return decode


async def read_all(api: Api, resource: Resource, namespace: str = "") -> list[msgspec.Raw]:
    """Return all objects of a namespace, or of all. Raises ApiError, Unreachable."""
    return [item async for page in pages(api, resource, namespace) for item in page.items]
