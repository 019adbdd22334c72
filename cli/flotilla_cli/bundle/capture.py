"""Records one object from the bus: first the content of the streams, then what arrives.

It subscribes before it reads, so that nothing is lost in between; messages that arrive while it reads count as known.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import msgspec

from flotilla_cli.bundle.records import Bundle, Header, Recorded, Replica
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.interface import Bus, Message
from flotilla_common.bus.pod_shards import pod_shards
from flotilla_common.bus.streams import newest, shards_of
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch
from flotilla_insight.published import LISTEN_SECONDS, listen
from flotilla_insight.redact import Redactor

_NODES = f"kube.v1.{NODE.id}."

LOOK_SECONDS = 0.1
"""Seconds between two checks whether the settings are known."""


class NothingPublished(Exception):
    """The bus has no such object."""


class Interest:
    """Picks the messages about one object.

    These are its own versions and dependents, writes on its behalf, its last plans, reports of node agents about it,
    and other objects that its controller reads. It learns from the messages that it picks, so it must see them in
    order.

    Dependents are recognised by their owner references, deletions of dependents by a known uid; objects whose names
    begin with the object's name (a stray that occupies a name) are picked, too. `Watch.concerns` selects other objects
    that the controller reads. Resources that it reads privately are not on the bus, unless others have them published,
    as may be the case for its dependents.
    """

    def __init__(self, kind: ControllerSpec[Any, Any], namespace: str, name: str, shards: int = 1) -> None:
        """Pick those about an object of the kind; `shards` is the number of streams with pods."""
        resource = kind.resource
        self._name = name
        self._owner = {"kind": resource.kind, "namespace": namespace, "name": name}
        self._uids: set[str] = set()  # of the object, of all its incarnations
        self._kept: set[str] = set()  # of other objects
        self._versions: list[Json] = []  # of the object
        self._object = subjects.kube(resource, namespace, name)
        self._object_filters = [subjects.kube_object(part, namespace, name) for part in _parts(resource, shards)]
        self.why_subject = subjects.why(resource, namespace, name)
        self.act_filters = _writes(kind, namespace)
        self._watches = {
            _subjects(part, namespace): (part, watch)
            for watch in kind.watches
            for part in _parts(watch.resource, shards)
            if not watch.named and (watch.owner == resource or (watch.concerns is not None and not watch.private))
        }
        self.report_subject = ""
        if kind.reports is not None:
            place = f"{subjects.token(namespace)}.{subjects.token(name)}"
            self.report_subject = f"report.v1.*.{kind.reports.kind}.{place}"
        self.looks_at_nodes = any(watch.resource == NODE and watch.concerns is None for watch in kind.watches)
        self.nodes: set[str] = set()  # that pods among the picked messages run on

    @property
    def others(self) -> Mapping[str, Resource]:
        """Return the filters for other objects that may matter, with their kinds, or shards of pods."""
        return {subject: part for subject, (part, _) in self._watches.items()}

    @property
    def live(self) -> list[str]:
        """Return the filters to subscribe to."""
        reports = [self.report_subject] if self.report_subject else []
        return [*self._object_filters, self.why_subject, *self.act_filters, *self._watches, *reports]

    def picks(self, message: Message, body: Json) -> bool:
        """Report whether the message is about the object."""
        if message.subject == self.why_subject or message.subject.startswith("report.v1."):
            return True
        if message.subject.startswith("act.v1."):
            return self._owner in (member(body, "owner"), {part: body.get(part) for part in self._owner})
        return bool(message.headers.get(subjects.OP)) and self._picks_object(message, body)

    def _picks_object(self, message: Message, body: Json) -> bool:
        uid = message.headers.get(subjects.UID, "")
        if subjects.object_part(message.subject) == self._object:
            self._uids.add(uid)
            if message.headers[subjects.OP] != subjects.MOVED:  # which has the identity only
                self._versions.append(body)
            return True
        watch = self._watch_of(message.subject)
        if watch is None or (uid not in self._kept and not self._matters(watch, body)):
            return False
        self._kept.add(uid)
        node = text(member(body, "spec").get("nodeName"))
        if node and self.looks_at_nodes:
            self.nodes.add(node)
        return True

    def _watch_of(self, subject: str) -> Watch[Any] | None:
        prefix = subject.split(".")[:4]
        watches = self._watches.items()
        return next((watch for pattern, (_, watch) in watches if pattern.split(".")[:4] == prefix), None)

    def _matters(self, watch: Watch[Any], body: Json) -> bool:
        if watch.concerns is not None:
            return any(watch.concerns(version, body) for version in self._versions)
        meta = member(body, "metadata")
        owned = any(reference.get("uid") in self._uids for reference in mappings(meta.get("ownerReferences")))
        return owned or text(meta.get("name")).startswith(f"{self._name}-")


def _parts(resource: Resource, shards: int) -> list[Resource]:
    return pod_shards(shards) if subjects.affiliated(resource) else [resource]


def _writes(kind: ControllerSpec[Any, Any], namespace: str) -> list[str]:
    """Return the subjects of writes for the object: in its namespace, and elsewhere where the controller writes."""
    written = [watch for watch in kind.watches if watch.writes or watch.subresources]
    elsewhere = [watch for watch in written if watch.private or watch.resource.namespaced != bool(namespace)]
    others = [f"act.v1.*.{watch.resource.plural}.*.*" for watch in elsewhere]
    return [f"act.v1.*.*.{subjects.token(namespace)}.*", *others]


def _subjects(resource: Resource, namespace: str) -> str:
    """Return the filter for all relevant objects of the kind: in the object's namespace, or all without one."""
    if namespace and resource.namespaced:
        return subjects.kube_namespace(resource, namespace)
    return subjects.kube_filter(resource)


class Capture:
    """One recording."""

    def __init__(
        self, bus: Bus, clock: Clock, entropy: Entropy, kind: ControllerSpec[Any, Any], namespace: str, name: str
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._kind = kind
        self._namespace = namespace
        self._name = name
        self._interest = Interest(kind, namespace, name)
        self._redactor = Redactor(entropy.token())
        self._records: list[Recorded] = []
        self._early: list[Message] = []  # arrived while the streams are still being read
        self._reading = True
        self._planning: Planning | None = None
        self._replicas: dict[tuple[str, str], Replica] = {}

    async def run(self, seconds: float) -> Bundle:
        """Record for this time, or until cancelled.

        It waits at least until the settings are known or a heartbeat is overdue. Raises NothingPublished, BusError.
        """
        shards = len(await shards_of(self._bus, POD))
        self._interest = Interest(self._kind, self._namespace, self._name, shards)
        await listen(self._bus, self._beat)
        for subject in self._interest.live:
            await self._bus.subscribe(subject, self._hear)
        await self._read_streams()
        begin, known = self._clock.now(), len(self._records)
        patience = self._clock.monotonic() + LISTEN_SECONDS
        with contextlib.suppress(asyncio.CancelledError):  # Ctrl-C ends the recording, not the command
            await self._clock.sleep(seconds)
            await self._settings(patience)
        end, heard = self._clock.now(), len(self._records)
        await self._settings(patience)
        nodes = await self._nodes()
        return Bundle(
            header=self._header(),
            known=(*nodes, *self._records[:known]),
            begin=begin,
            heard=tuple(self._records[known:heard]),
            end=end,
        )

    async def _settings(self, patience: float) -> None:
        """Wait for the service's settings, with a limit, because it may be down."""
        while self._planning is None and self._clock.monotonic() < patience:
            await self._clock.sleep(LOOK_SECONDS)

    async def _read_streams(self) -> None:
        """Read the object first: its uid identifies its dependents."""
        found = await newest(self._bus, self._kind.resource, self._namespace, self._name)
        if found is None or found.headers.get(subjects.OP) == subjects.DELETED:
            raise NothingPublished
        self._take(found)
        for subject, resource in self._interest.others.items():
            await self._bus.history(subjects.kube_stream(resource).name, subject, self._take)
        for written in self._interest.act_filters:
            await self._bus.history(subjects.ACT_STREAM.name, written, self._take)
        why = await self._bus.get_last(subjects.WHY_STREAM.name, self._interest.why_subject)
        if why is not None:
            self._take(why)
        self._reading = False
        for message in self._early:
            self._take(message)

    async def _nodes(self) -> list[Recorded]:
        """Return the nodes of its pods as they are at the end: only labels count, which hardly ever change."""
        stream = subjects.kube_stream(NODE).name
        found = [await self._bus.get_last(stream, subjects.kube(NODE, "", name)) for name in self._interest.nodes]
        return [self._record(message, _body(message)) for message in found if message is not None]

    def _hear(self, message: Message) -> None:
        if subjects.AGAIN in message.headers:
            return  # nothing new: what it says was in the stream
        if self._reading:
            self._early.append(message)
        else:
            self._take(message)

    def _take(self, message: Message) -> None:
        body = _body(message)
        if self._interest.picks(message, body):
            self._records.append(self._record(message, body))

    def _record(self, message: Message, body: Json) -> Recorded:
        if message.subject.startswith(_NODES):  # most of a node is the list of its images
            status = {key: value for key, value in member(body, "status").items() if key != "images"}
            body = body | {"status": status}
        headers = {name: value for name, value in message.headers.items() if not name.startswith("Nats-")}
        return Recorded(at=self._clock.now(), subject=message.subject, headers=headers, body=self._redactor.body(body))

    def _beat(self, beat: Heartbeat) -> None:
        self._replicas[beat.service, beat.replica] = Replica(beat.service, beat.replica, beat.version)
        if planning := mapping(beat.planning.get(self._kind.resource.plural)):
            self._planning = msgspec.convert(planning, Planning)

    def _header(self) -> Header:
        return Header(
            version=version("flotilla-cli"),
            resource=self._kind.resource,
            namespace=self._namespace,
            name=self._name,
            redacted=self._redactor.count,
            planning=self._planning,
            replicas=tuple(self._replicas[key] for key in sorted(self._replicas)),
        )


def _body(message: Message) -> Json:
    """Return the payload; empty if it cannot be decoded."""
    try:
        return mapping(msgspec.json.decode(message.data)) if message.data else {}
    except msgspec.MsgspecError:
        return {}
