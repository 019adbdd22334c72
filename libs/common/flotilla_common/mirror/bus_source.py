"""Reads objects from the watcher's stream.

Objects carry the epoch of the LIST that they belong to. When the marker shows that an epoch is complete up to a
version, objects that are not newer and were not published in that epoch do not exist any more. So a late joiner, a
watcher that started over and a wiped bus all end with the same table. The exception is an object with a message of
another epoch in the stream: a replaced watcher may have sent it late, and it hides the message of this epoch. Then the
apiserver is asked.

A source may follow some objects only, whose subjects say whose they are, or one shard of pods. It judges the absence
of these alone.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import structlog

from flotilla_common.api.meta import Object, ObjectMeta
from flotilla_common.api.uidranges import UidRange
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import PodLike
from flotilla_common.bus.interface import Bus, Follow, Message
from flotilla_common.bus.markers import MarkerGate
from flotilla_common.bus.pod_shards import pod_shard
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.kube.reflector import HeadMeta, decode_head
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.scope import EVERYTHING, Interests, covers
from flotilla_common.mirror.table import VersionsWentBack, version_number, version_of

FETCH_SECONDS = 1.0
"""Delay between attempts to fetch an object that the bus does not carry in full."""


class _Version(msgspec.Struct, frozen=True):
    """The last message on a subject, in an epoch that is not complete yet."""

    epoch: str
    uid: str  # empty when the object is gone


class BusSource:
    """A follower of one resource's stream, or of the part of it that some interests cover."""

    def __init__(
        self,
        bus: Bus,
        api: Api,
        decoder: ObjectDecoder[Any],
        clock: Clock,
        on_synced: Callable[[], None],
        interests: Interests = EVERYTHING,
        name: str = "",
        shard: int = 0,
        on_count: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Follow what the interests cover in one shard; `name` distinguishes the sources of one table.

        `on_count` is called with the number of shards whenever a marker names another one than before.
        """
        self._shard = shard
        self._on_count = on_count
        self.count = 1
        """Number of shards, by the last marker."""
        self._streamed = pod_shard(shard) if shard else decoder.resource
        self.interests = interests
        self._name = name
        self._bus = bus
        self._api = api
        self._decoder = decoder
        self._clock = clock
        self._on_synced = on_synced
        self._marker_subject = subjects.kube_marker(self._streamed)
        self._epoch = ""  # the epoch that was completed last
        self._versions: dict[str, _Version] = {}  # by subject
        self._line: str | None = None  # the first line of versions that was seen
        self._other_line = ""  # another line that was seen since: etcd was restored
        self.synced = False
        """True once everything that existed when the source began is in the table."""
        self._warned = False  # of a watcher of an older release
        self._marker_gate = MarkerGate()
        self.last_update = clock.monotonic()
        """Time (monotonic) of the last proof that the source is up to date."""
        self.last_listed = float("-inf")
        """Time (monotonic) of the last proof that the watcher's LIST makes progress."""
        self._follow: Follow | None = None
        self._fetches: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger(resource=self._streamed.id)

    @property
    def healthy(self) -> bool:
        """Report whether the follow is complete, to its own knowledge."""
        return self._follow is not None and self._follow.healthy

    @property
    def trusted(self) -> bool:
        """Report whether everything is in the table, and is followed without a gap."""
        return self.synced and self.healthy

    async def start(self) -> None:
        stream = subjects.kube_stream(self._streamed).name
        self._follow = await self._bus.follow(stream, self._filters(), self._receive, self._reset)

    def _filters(self) -> list[str]:
        if self.interests == EVERYTHING:
            return [">"]
        return [self._marker_subject, *sorted(subjects.interest_filter(one, self._streamed) for one in self.interests)]

    async def stop(self) -> None:
        if self._follow is not None:
            await self._follow.stop()
        for task in self._fetches:
            task.cancel()
        await asyncio.gather(*self._fetches, return_exceptions=True)

    def tick(self) -> None:
        """Raise VersionsWentBack after messages of two lines of versions, because objects of one may hide others."""
        if self._other_line:
            raise VersionsWentBack(
                f"the watcher publishes line {self._other_line} of versions, this process began with line {self._line}:"
                " etcd was restored, restarting"
            )

    def _reset(self) -> None:
        """Start over, because the stream is read again or is another one; the table's objects remain for now."""
        self._epoch = ""
        self._versions.clear()
        self.synced = False
        self._marker_gate.forget()

    def _receive(self, message: Message) -> None:
        if message.subject == self._marker_subject:
            self._note(self._marker_gate.note(message))
        else:
            self._follow_line(message.headers.get(subjects.EPOCH, ""))
            self._take(message)
        marker = self._marker_gate.due(message)
        if marker is None:
            return
        if not self._can_use(marker):
            self.synced = False
            return
        if marker.epoch != self._epoch:
            self._complete(marker)
        if not self.synced:
            self.synced = True
            self._on_synced()

    def _note(self, marker: subjects.Marker) -> None:
        if marker.state == subjects.LISTING and marker.count:
            self.last_listed = self._clock.monotonic()
        else:
            self.last_update = self._clock.monotonic()
        self._follow_line(marker.epoch)
        if marker.shard_count != self.count:
            self.count = marker.shard_count
            self._on_count(self.count)

    def _can_use(self, marker: subjects.Marker) -> bool:
        """Report whether the shard exists, and whether the subjects say whose the objects are, if that matters.

        A watcher of an older release does not publish that. Until it is replaced, the feed falls back.
        """
        if self._shard >= marker.shard_count:
            return False
        if self.interests == EVERYTHING or marker.layout >= subjects.LAYOUT:
            return True
        if self.synced or not self._warned:
            self._warned = True
            self._log.warning("the watcher is of an older release: its subjects do not say whose the objects are")
        return False

    def _follow_line(self, epoch: str) -> None:
        line = subjects.line_of(epoch)
        if self._line is None:
            self._line = line
        elif line != self._line:
            self._other_line = line

    def _take(self, message: Message) -> None:
        headers, table = message.headers, self._decoder.table
        op = headers.get(subjects.OP)
        deleted = op == subjects.DELETED  # what has moved exists: its new subject's source may be behind this one
        epoch, uid = headers.get(subjects.EPOCH, ""), headers.get(subjects.UID, "")
        if epoch != self._epoch:
            self._versions[message.subject] = _Version(epoch, "" if deleted else uid)
        if op == subjects.MOVED:
            self._decoder.moved(decode_head(message.data).metadata, headers.get(subjects.TO, ""))
            return
        if deleted:
            if message.data:
                self._decoder.drop(decode_head(message.data).metadata)
            return
        version = version_number(headers.get(subjects.RV, ""))
        held = table.by_uid(uid)
        if held is not None and version_of(held) >= version > 0:
            return  # our own write comes back, or an old message: not worth decoding
        if subjects.names_only(headers) or (table.is_presumed_absent(uid) and version <= table.inferred):
            self._fetch(decode_head(message.data).metadata)
        else:
            self._decoder.take(message.data, covered=True, source=self._name)

    def _complete(self, marker: subjects.Marker) -> None:
        table, version = self._decoder.table, version_number(marker.rv)
        uids = UidRange(self._shard, marker.shard_count)
        listed = {one.uid for one in self._versions.values() if one.epoch == marker.epoch}
        hiding = {one.uid for one in self._versions.values() if one.epoch != marker.epoch}
        unlisted = [
            obj
            for obj in table
            if obj.metadata.uid not in listed and version_of(obj) <= version and self._follows(obj, uids)
        ]
        for obj in unlisted:
            if obj.metadata.uid in hiding:
                self._fetch(obj.metadata)
            else:
                table.presume_absent(obj, version)
        self._decoder.forget_unlisted(listed | hiding, version, source=self._name, uids=uids)
        self._log.info("synced from the bus", epoch=marker.epoch, objects=len(table), unlisted=len(unlisted))
        self._epoch = marker.epoch
        self._versions.clear()

    def _follows(self, obj: Object, uids: UidRange) -> bool:
        if not uids.covers(obj.metadata.uid):
            return False
        return self.interests == EVERYTHING or covers(self.interests, cast("PodLike", obj))

    def _fetch(self, head: HeadMeta | ObjectMeta) -> None:
        """Fetch an object from the apiserver, in the background."""
        task = asyncio.get_running_loop().create_task(self._fetch_until_known(head))
        self._fetches.add(task)
        task.add_done_callback(self._fetches.discard)

    async def _fetch_until_known(self, head: HeadMeta | ObjectMeta) -> None:
        while True:
            as_of = self._decoder.table.inferred
            try:
                found = self._decoder.take(
                    await self._api.get(self._decoder.resource, head.namespace, head.name), as_of
                )
            except ApiError as error:
                if error.code == 404:
                    self._gone(head)
                    return
                self._log.warning("cannot fetch", name=head.name, error=error.message)
            except Unreachable as error:
                self._log.warning("cannot fetch", name=head.name, error=str(error))
            else:
                if found is not None and found.metadata.uid != head.uid:
                    self._gone(head)
                return
            await self._clock.sleep(FETCH_SECONDS)

    def _gone(self, head: HeadMeta | ObjectMeta) -> None:
        """Remove an object that the apiserver does not have."""
        self._decoder.drop(HeadMeta(name=head.name, namespace=head.namespace, uid=head.uid))
