"""A recording: the passes of the service, and tables that are fed by the messages as the service's own tables are.

A service sees the result of its own write before the bus delivers it, and reads the object at once when the write is
refused. So the version that a recorded write names is looked up in the file, wherever it is, and applied at once.
Messages with the same trace are one pass.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from flotilla_cli.bundle.records import Bundle, Header, Recorded
from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.pod_shards import plural_of
from flotilla_common.control.plan import ObjectRef, OutcomeKind
from flotilla_common.kube.reflector import decode_head
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import Indexer, Table, version_of
from flotilla_insight.published import Act, Why, decoded

T = TypeVar("T", bound=Object)

IDLE = timedelta(seconds=2)
"""Time without messages after which a service has published everything and planned everything that it received."""


class RecordedTables:
    """Supplies the tables of a gatherer in a replay."""

    def __init__(self, messages: Iterable[Recorded]) -> None:
        self._decoders: dict[str, ObjectDecoder[Any]] = {}  # by the resource's id
        self._by_kind: dict[str, ObjectDecoder[Any]] = {}
        self._versions = {
            (subjects.object_part(message.subject), message.headers.get(subjects.RV, "")): message
            for message in messages
            if message.subject.startswith("kube.v1.") and not _is_moved(message)
        }
        self._changes = 0

    def add(self, resource: Resource, kind: type[T], indexes: Mapping[str, Indexer[T]]) -> Table[T]:
        """Add a table of the resource's objects."""
        table = Table[T](indexes)
        table.listen(self._count)
        self._decoders[resource.id] = self._by_kind[resource.kind] = ObjectDecoder(resource, kind, table)
        return table

    def take(self, recorded: Recorded) -> bool:
        """Apply a message of the watcher's. Return whether it changed a table."""
        decoder = self._decoder(recorded)
        if decoder is None or _is_moved(recorded):
            return False
        before, message = self._changes, recorded.message()
        if recorded.headers.get(subjects.OP) != subjects.DELETED:
            decoder.take(message.data)
        elif message.data:
            decoder.drop(decode_head(message.data).metadata)
        return self._changes > before

    def readable(self, subject: ObjectRef) -> bool:
        """Report whether the object's newest version could be decoded; no service plans with an older one."""
        return subject.uid not in self._decoders[subject.resource.id].undecodable

    def lacks(self, recorded: Recorded) -> bool:
        """Report whether the message is the watcher's and newer than the tables."""
        decoder = self._decoder(recorded)
        if decoder is None or _is_moved(recorded):
            return False
        held = decoder.table.by_uid(recorded.headers.get(subjects.UID, ""))
        if held is None:
            return recorded.headers.get(subjects.OP) != subjects.DELETED
        return version_of(held) < int(recorded.headers.get(subjects.RV) or 0)

    def wrote(self, act: Act) -> bool:
        """Apply the result of a write. Return False if the file does not hold that version."""
        decoder = self._by_kind.get(act.kind)
        if decoder is None or not (act.ok or act.resource_version or act.outcome == OutcomeKind.NOT_FOUND):
            return True
        subject = subjects.kube(decoder.resource, act.namespace, act.name)
        left = self._versions.get((subject, act.resource_version))
        deleted = act.ok and act.action == "delete" and not (left and left.body["metadata"].get("deletionTimestamp"))
        if deleted or (act.outcome == OutcomeKind.NOT_FOUND and not act.resource_version):
            held = decoder.table.get(act.namespace, act.name)
            if held is not None:
                decoder.table.remove(act.namespace, act.name, held.metadata.uid)
            return True
        if left is not None and left.headers.get(subjects.OP) != subjects.DELETED:
            self.take(left)
        return left is not None or not act.resource_version

    def _decoder(self, recorded: Recorded) -> ObjectDecoder[Any] | None:
        """Return the intake for the message; None for other messages, and objects that the bus only names."""
        if not recorded.subject.startswith("kube.v1.") or subjects.names_only(recorded.headers):
            return None
        _, _, group, plural, *_ = recorded.subject.split(".")
        return self._decoders.get(f"{group}.{plural_of(plural)}")

    def _count(self, old: object, new: object) -> None:
        self._changes += 1


def _is_moved(recorded: Recorded) -> bool:
    """Report whether the message only says that a pod is published on another subject, where the file has it."""
    return recorded.headers.get(subjects.OP) == subjects.MOVED


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of a controller over the object."""

    trace: str
    replica: str
    at: datetime  # when it planned, by the service's clock
    position: int  # of its first message among the recorded ones
    why: Why | None  # None: same reasons and numbers as the pass before
    acts: tuple[Act, ...]
    whole: bool  # all its messages were certainly recorded: it was not the last thing before the end

    @property
    def complete(self) -> bool:
        """Report whether all writes are recorded and succeeded, so that nothing was held back."""
        return self.whole and all(act.outcome in ("Ok", "NotFound") for act in self.acts)


def in_order(heard: Sequence[Recorded]) -> tuple[Recorded, ...]:
    """Return the messages, with those of each replica in the order of publication.

    Plans and writes have different subjects, and messages of several subjects arrive in any order. So each replica's
    messages are sorted within their places.
    """
    sorted_ = list(heard)
    for places in _by_replica(heard).values():
        sent = sorted((heard[place] for place in places), key=_sequence)
        for place, recorded in zip(places, sent, strict=True):
            sorted_[place] = recorded
    return tuple(sorted_)


def act_of(recorded: Recorded) -> Act | None:
    """Return the write that a message records, or None."""
    return msgspec.convert(recorded.body, Act) if recorded.subject.startswith("act.v1.") else None


def why_of(recorded: Recorded) -> Why | None:
    """Return the plan that a message records, or None if it is another message or cannot be decoded."""
    return decoded(msgspec.json.encode(recorded.body), Why) if recorded.subject.startswith("why.v1.") else None


def passes(bundle: Bundle) -> list[Pass]:
    """Return the passes that were recorded from their beginning, in order."""
    earlier = {trace for trace in map(_trace, bundle.known) if trace}
    heard: dict[str, list[int]] = {}
    for position, recorded in enumerate(bundle.heard):
        trace = _trace(recorded)
        if trace and trace not in earlier and not _is_of_another(recorded, bundle.header):
            heard.setdefault(trace, []).append(position)
    ended = _ended(bundle)
    found = (_pass(trace, positions, bundle.heard, trace in ended) for trace, positions in heard.items())
    return [one for one in found if one is not None and (one.why is not None or one.at > bundle.begin)]


def last_why(messages: Sequence[Recorded]) -> Why | None:
    """Return the newest plan among the messages, or None."""
    return next((why for why in map(why_of, reversed(messages)) if why is not None), None)


def _ended(bundle: Bundle) -> set[str]:
    """Return the passes that were over at the end: the replica began another, or was quiet since."""
    traces = {trace for trace in map(_trace, bundle.heard) if trace}
    for places in _by_replica(bundle.heard).values():
        last = bundle.heard[places[-1]]
        if bundle.end - last.at < IDLE:
            traces.discard(_trace(last))
    return traces


def _by_replica(heard: Iterable[Recorded]) -> dict[tuple[object, ...], list[int]]:
    """Return the indexes of each replica's messages."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, recorded in enumerate(heard):
        if _trace(recorded):
            found.setdefault((recorded.body.get("service"), recorded.body.get("replica")), []).append(place)
    return found


def _sequence(recorded: Recorded) -> int:
    sequence = recorded.body.get("sequence")
    return sequence if isinstance(sequence, int) else 0


def _pass(trace: str, positions: Sequence[int], heard: Sequence[Recorded], whole: bool) -> Pass | None:
    """Return the pass; None if none of its messages can be decoded."""
    whys = [why for why in (why_of(heard[position]) for position in positions) if why is not None]
    acts = [act for act in (act_of(heard[position]) for position in positions) if act is not None]
    if not whys and not acts:
        return None
    why = whys[0] if whys else None
    began = min((act.at - timedelta(milliseconds=act.latency_ms) for act in acts), default=heard[positions[0]].at)
    return Pass(
        trace=trace,
        replica=why.replica if why else acts[0].replica,
        at=why.at if why and why.at else began,
        position=positions[0],
        why=why,
        acts=tuple(acts),
        whole=whole,
    )


def _is_of_another(recorded: Recorded, header: Header) -> bool:
    """Report whether a controller of another object wrote it, for example to take budget."""
    owner = {"kind": header.resource.kind, "namespace": header.namespace, "name": header.name}
    return recorded.subject.startswith("act.v1.") and recorded.body.get("owner") != owner


def _trace(recorded: Recorded) -> str:
    if recorded.subject.startswith(("act.v1.", "why.v1.")):
        trace = recorded.body.get("trace")
        return trace if isinstance(trace, str) else ""
    return ""
