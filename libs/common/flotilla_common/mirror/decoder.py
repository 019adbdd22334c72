"""Decodes objects into tables, from any source or response.

An object that does not fit its type, or that an indexer or a listener of the table cannot handle, never stops anything:
it is set aside with the error, and a listener may report it. A later version, or its deletion, clears that entry.
"""

from collections.abc import Callable, Container, Iterable
from typing import Generic, TypeVar, cast

import msgspec

from flotilla_common.api.documents import without_nulls
from flotilla_common.api.meta import Object, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.uidranges import EVERY_UID, UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import PodLike
from flotilla_common.kube.reflector import HeadMeta, decode_head
from flotilla_common.mirror.scope import Interests, covers, covers_raw
from flotilla_common.mirror.sharing import Parts
from flotilla_common.mirror.table import Table, log_failure, version_number, version_of

T = TypeVar("T", bound=Object)


class Undecodable(msgspec.Struct, frozen=True, kw_only=True):
    """An object that cannot be decoded or handled, and the error."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: str
    error: str
    source: str = ""  # the name of the bus source that it came from; see `forget_unlisted`


OnUndecodable = Callable[[Undecodable], None]


class ObjectDecoder(Generic[T]):
    """A decoder of one resource's objects into its table."""

    def __init__(self, resource: Resource, kind: type[T], table: Table[T]) -> None:
        self.resource = resource
        self.kind = kind
        self.table = table
        self.interests: Interests | None = None
        """The objects that belong into the table; None: all. Others are decoded, but not kept."""
        self.undecodable: dict[str, Undecodable] = {}  # by uid
        table.on_failure = self._cannot_handle
        self._decoder = msgspec.json.Decoder(kind)
        self._parts = Parts()
        self._listeners: list[OnUndecodable] = []

    def listen(self, listener: OnUndecodable) -> None:
        """Call `listener` for every object that is set aside."""
        self._listeners.append(listener)

    def covers(self, obj: Object) -> bool:
        """Report whether the object belongs into the table."""
        return self.interests is None or covers(self.interests, cast("PodLike", obj))

    def covers_raw(self, raw: msgspec.Raw) -> bool:
        """Report the same of an object's JSON."""
        return self.interests is None or covers_raw(self.interests, raw)

    def take(self, raw: bytes | msgspec.Raw, as_of: int = -1, *, covered: bool = False, source: str = "") -> T | None:
        """Decode and apply an object (`as_of`: see `Table.apply`); return it, or None when it was set aside.

        With `covered` it is known to belong into the table. An object that does not is dropped from it, because no
        source follows it.
        """
        obj = self.decode(raw, source)
        if obj is None:
            return None
        if covered or self.covers(obj):
            self.table.apply(obj, as_of)
        else:
            self.table.evict(obj, version_of(obj), notify=True)
        return obj

    def moved(self, head: HeadMeta, subject: str) -> None:
        """Drop an object that was published on another subject at the version of `head`, unless it still belongs here.

        It exists, so it may come back.
        """
        if self.interests is None:
            return
        now = subjects.affiliation(subject)
        if now is None or not any(interest.covers(head.namespace, now) for interest in self.interests):
            self.leave_out(head.uid, version_number(head.resource_version))

    def leave_out(self, uid: str, version: int) -> None:
        """Drop an object that at this version does not belong into the table: it exists, and may come back."""
        aside = self.undecodable.get(uid)
        if aside is not None and version_number(aside.version) <= version:
            del self.undecodable[uid]
        held = self.table.by_uid(uid)
        if held is not None:
            self.table.evict(held, version, notify=True)

    def split(self, items: Iterable[msgspec.Raw]) -> tuple[list[T], dict[str, int]]:
        """Return the objects of a LIST that belong into the table, and the versions of the others by uid.

        Those that cannot be decoded are set aside.
        """
        needed, others = list[T](), dict[str, int]()
        for item in items:
            if not self.covers_raw(item):
                head = decode_head(item).metadata
                others[head.uid] = version_number(head.resource_version)
            elif (obj := self._held_or_decoded(item)) is not None:
                needed.append(obj)
        return needed, others

    def _held_or_decoded(self, raw: msgspec.Raw) -> T | None:
        """Return the table's object if it is of this version: Python keeps most of the memory of second copies."""
        try:
            head = decode_head(raw).metadata
        except (msgspec.MsgspecError, RecursionError):
            return self.decode(raw)  # which reports it
        held = self.table.by_uid(head.uid)
        is_same = held is not None and version_of(held) == version_number(head.resource_version)
        return held if is_same else self.decode(raw)

    def decode(self, raw: bytes | msgspec.Raw, source: str = "") -> T | None:
        """Decode an object without applying it; return None when it was set aside.

        Raw members of a decoded object point into the buffer that it came from. A slice of a LIST page is copied first,
        or one small object would keep the whole page in memory.
        """
        if isinstance(raw, msgspec.Raw):
            raw = bytes(raw)
        try:
            obj = self._decode(raw)
        except (msgspec.MsgspecError, RecursionError) as error:
            self._cannot_decode(raw, error, source)
            return None
        self._parts.share(obj)
        if self.undecodable and self._is_newer(obj):
            self.undecodable.pop(obj.metadata.uid, None)
        return obj

    def _decode(self, raw: bytes) -> T:
        """Decode as Kubernetes does: a null member is absent. Few objects have one that matters."""
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            document = msgspec.json.decode(raw)
            bare = without_nulls(document)
            if bare == document:
                raise
            try:
                return self._decoder.decode(msgspec.json.encode(bare))
            except msgspec.ValidationError:
                raise error from None

    def drop(self, head: HeadMeta) -> None:
        """Remove the object of that name and uid, which is gone."""
        self.undecodable.pop(head.uid, None)
        self.table.remove(head.namespace, head.name, head.uid, version_number(head.resource_version))

    def forget_unlisted(
        self,
        listed: Container[str],
        version: int,
        name: str = "",
        source: str = "",
        uids: UidRange = EVERY_UID,
    ) -> None:
        """Drop set-aside objects that a complete LIST at `version` lacks (by uid), unless they are newer.

        With `name` it was a LIST of objects of this name; with `source` one of what this bus source follows; with
        `uids` one of this range.
        """
        aside = [
            one
            for one in self.undecodable.values()
            if name in ("", one.name) and (not source or one.source in ("", source)) and uids.covers(one.uid)
        ]
        gone = [one.uid for one in aside if one.uid not in listed and version_number(one.version) <= version]
        for uid in gone:
            del self.undecodable[uid]

    def _is_newer(self, obj: T) -> bool:
        """Report whether the object is newer than the set-aside version: a late old message repairs nothing."""
        aside = self.undecodable.get(obj.metadata.uid)
        return aside is not None and version_of(obj) > version_number(aside.version)

    def _cannot_decode(self, raw: bytes, error: Exception, source: str) -> None:
        try:
            head = decode_head(raw).metadata
        except (msgspec.MsgspecError, RecursionError):
            head = HeadMeta()  # not even an object: there is only its error to report
        self._set_aside(head, str(error), source)

    def _cannot_handle(self, obj: T, error: Exception) -> None:
        log_failure(obj, error)
        if not self.table.was_deleted(obj.metadata.uid):
            self._set_aside(obj.metadata, f"{type(error).__name__}: {error}")

    def _set_aside(self, head: HeadMeta | ObjectMeta, error: str, source: str = "") -> None:
        undecodable = Undecodable(
            resource=self.resource,
            namespace=head.namespace,
            name=head.name,
            uid=head.uid,
            version=head.resource_version,
            error=error,
            source=source,
        )
        known = self.undecodable.get(head.uid)
        self.undecodable[head.uid] = undecodable
        if known is None or known.version != undecodable.version:
            for listener in self._listeners:
                listener(undecodable)
