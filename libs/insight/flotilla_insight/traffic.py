"""Bus traffic for people: reads past and new messages, and turns each into a line of `flotilla tail`.

The three streams belong together: the watcher's changes (kube.v1), the services' writes with their outcomes (act.v1),
and their reasons (why.v1). Each stream is read in order, past and present alike, so that no message is missing or read
twice. Past messages of all streams are collected and sorted; later ones are passed on as they arrive.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import msgspec

from flotilla_common.api.changes import change_text, changed_paths
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message, OnMessage
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.pod_shards import plural_of, pod_shards
from flotilla_common.control.plan import State
from flotilla_common.installed import published

REMEMBERED = 5000
"""Number of objects whose last version is kept to show what changed: about 20 MB of pods."""

_PATHS_SHOWN = 3
_POD_WORDS = ("pods", "po")

PATIENCE_SECONDS = 30.0
"""Limit for reading the past: the record of writes holds 256 MiB, which takes some seconds."""


class Line(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One event."""

    at: datetime
    stream: str  # kube, act, why or heartbeat
    service: str  # the sender
    kind: str
    namespace: str
    name: str
    what: str
    cause: str = ""
    outcome: str = ""
    owner: str = ""  # kind/name of the object on whose behalf it happened
    message: Json = {}  # the payload, as it was published; without the object for kube


class LineReader:
    """Turns messages into lines; caches objects to tell a change from a repetition."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Json] = OrderedDict()
        self._kinds = {resource.id: resource.kind for resource in published()}  # objects from a LIST lack their kinds

    def read(self, message: Message, now: datetime) -> Line | None:
        """Return the line of a message received now; None for a marker, or a message that cannot be decoded."""
        tokens = message.subject.split(".")
        try:
            body = mapping(msgspec.json.decode(message.data)) if message.data else {}
        except (msgspec.MsgspecError, RecursionError):
            return None
        match tokens:
            case ["kube", "v1", group, plural, namespace, name, *_]:
                return self._kube(message, body, now, f"{group}.{plural_of(plural)}", namespace, name)
            case ["act", *_]:
                return _act(body, now)
            case ["why" | "decisions", *_]:
                return _why(body, now)
            case ["heartbeat", "v1", service, replica]:
                return _heartbeat(body, now, service, replica)
            case _:
                return None

    def _kube(
        self, message: Message, body: Json, now: datetime, resource: str, namespace: str, name: str
    ) -> Line | None:
        operation = message.headers.get(subjects.OP, "")
        if not operation:
            return None  # the server's own message that a tombstone has expired
        key = subjects.object_part(message.subject)
        before = self._seen.pop(key, None)
        version = before if operation == subjects.MOVED else body  # the body of a MOVED message is the identity only
        if version is not None and operation != subjects.DELETED:
            self._remember(key, version)
        meta = member(body, "metadata")
        return Line(
            at=now,
            stream="kube",
            service="watcher",
            kind=text(body.get("kind")) or self._kinds.get(resource, resource.rpartition(".")[2]),
            namespace=text(meta.get("namespace")) or ("" if namespace == "_" else namespace),
            name=text(meta.get("name")) or name,
            what=operation.lower(),
            cause=_change(message, before, body),
            outcome=f"rv {message.headers.get(subjects.RV, '?')}",
            owner=_owner(meta) or _owner(member(before or {}, "metadata")),  # a tombstone does not name its owner
            message=dict(message.headers),
        )

    def _remember(self, key: str, body: Json) -> None:
        self._seen[key] = body
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)


def _act(body: Json, now: datetime) -> Line:
    owner = member(body, "owner")
    action, part = text(body.get("action")), text(body.get("subresource"))
    problem = text(body.get("message"))
    latency = f" {_number(body.get('latencyMs'))}ms" if "latencyMs" in body else ""  # users' writes have none
    return Line(
        at=now,
        stream="act",
        service=text(body.get("service")),
        kind=text(body.get("kind")),
        namespace=text(body.get("namespace")),
        name=text(body.get("name")),
        what=f"{action} {part}".rstrip(),
        cause=text(body.get("cause")) or _wish(body),
        outcome=f"{text(body.get('outcome'))}{latency}{': ' + problem if problem else ''}",
        owner=f"{text(owner.get('kind'))}/{text(owner.get('name'))}" if owner else "",
        message=body,
    )


def _wish(body: Json) -> str:
    """Return who wrote it, which object decided about it, and what changed, for writes that the webhook saw."""
    user, manager = text(body.get("user")), text(body.get("manager"))
    if not user:
        return ""
    owner = member(body, "owner")
    kind, name = text(owner.get("kind")), text(owner.get("name"))
    decided = [] if (kind, name) in (("", ""), (body.get("kind"), body.get("name"))) else [f"decided by {kind} {name}"]
    fields = [change_text(change) for change in mappings(body.get("changes"))]
    return "; ".join([f"by {user} with {manager}" if manager else f"by {user}", *decided, *_first(fields)])


def _why(body: Json, now: datetime) -> Line:
    reasons = [_sentence(reason) for reason in mappings(body.get("reasons"))]
    writes = [f"{count} {verb}" for verb, count in mapping(body.get("actions")).items() if count]
    errors = [text(error.get("message")) for error in mappings(body.get("errors"))]
    return Line(
        at=now,
        stream="why",
        service=text(body.get("service")),
        kind=text(body.get("kind")),
        namespace=text(body.get("namespace")),
        name=text(body.get("name")),
        what="plan",
        cause="; ".join(reasons) or "nothing to wait for",
        outcome="; ".join(errors) or ", ".join(writes) or "no writes",
        message=body,
    )


def _sentence(reason: Json) -> str:
    """Return the same as `Reason.sentence`, also for a record of another release."""
    return f"{'waiting: ' if reason.get('state') == State.WAITING else ''}{text(reason.get('message'))}"


def _heartbeat(body: Json, now: datetime, service: str, replica: str) -> Line:
    known = ("service", "replica", "planning")  # the last is for bundles, and long
    facts = [f"{name}={value}" for name, value in body.items() if name not in known and value]
    return Line(
        at=now,
        stream="heartbeat",
        service=service,
        kind="replica",
        namespace="",
        name=replica,
        what="heartbeat",
        cause=" ".join(facts),
        message=body,
    )


def _change(message: Message, before: Json | None, after: Json) -> str:
    """Return the changed fields, or whose a pod is now."""
    match message.headers.get(subjects.OP):
        case subjects.MODIFIED:
            return _difference(before, after)
        case subjects.MOVED:
            return f"to {'.'.join(message.headers.get(subjects.TO, '').split('.')[6:])}"
        case _:
            return ""


def _difference(before: Json | None, after: Json) -> str:
    if before is None:
        return ""
    paths = sorted(changed_paths(before, after), key=lambda path: not path.startswith("spec"))  # wishes before facts
    return ", ".join(_first(paths))


def _first(fields: list[str]) -> list[str]:
    """Return the first few of them, and the number of the others."""
    left = len(fields) - _PATHS_SHOWN
    return fields if left <= 0 else [*fields[: _PATHS_SHOWN - 1], f"{fields[_PATHS_SHOWN - 1]} and {left} more"]


def _owner(meta: Json) -> str:
    for reference in mappings(meta.get("ownerReferences")):
        if reference.get("controller"):
            return f"{text(reference.get('kind'))}/{text(reference.get('name'))}"
    return ""


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "?"


def matches(line: Line, pattern: str) -> bool:
    """Report whether a glob names the line's object, or its owner.

    Names may have any of these forms: `web-*`, `pod`, `pod/web-1`, `team-a/web-1`, `pod/team-a/web-1`, `team-a/*`. A
    kind may have its short name. Case does not matter. An empty pattern matches everything.
    """
    wanted = _spellings(pattern.lower())
    return not pattern or any(fnmatchcase(name.lower(), one) for name in _names(line) for one in wanted)


@cache
def _spellings(pattern: str) -> frozenset[str]:
    """Return the pattern, also with the full name of a kind that its first word abbreviates."""
    word, slash, rest = pattern.partition("/")
    if word in _POD_WORDS:
        return frozenset({pattern, f"pod{slash}{rest}"})
    try:
        return frozenset({pattern, f"{catalogue.called(word).singular}{slash}{rest}"})
    except LookupError:
        return frozenset({pattern})


def _names(line: Line) -> Iterable[str]:
    yield from (line.name, line.kind, f"{line.kind}s", f"{line.kind}/{line.name}")
    if line.namespace:
        yield from (line.namespace, f"{line.namespace}/{line.name}", f"{line.kind}/{line.namespace}/{line.name}")
    if line.owner:
        kind, _, name = line.owner.partition("/")
        yield from (name, line.owner, f"{line.namespace}/{name}", f"{kind}/{line.namespace}/{name}")


def stored_streams(streams: Iterable[str], shards: int = 1) -> list[str]:
    """Return the names of the streams that store subjects with these first words. Heartbeats are not stored.

    `shards` is the number of streams with pods.
    """
    resources = (*published(), *pod_shards(shards)[1:])
    found = {
        "kube": [subjects.kube_stream(resource).name for resource in resources],
        "act": [subjects.ACT_STREAM.name],
        "why": [subjects.DECISIONS_STREAM.name],
    }
    return [name for stream in streams for name in found.get(stream, ())]


async def read_since(bus: NatsBus, names: Iterable[str], since: datetime, on_message: OnMessage) -> None:
    """Pass on the past in time order, and return; new messages follow until the bus is closed.

    Raises BusError if the past cannot be read.
    """
    past: list[Message] | None = []
    behind: set[str] = set()
    arrived = asyncio.Event()

    def reader(name: str) -> OnMessage:
        def take(message: Message) -> None:
            if past is None:
                on_message(message)
                return
            past.append(message)
            if not message.pending:
                behind.discard(name)
                arrived.set()

        return take

    for name in names:
        behind.add(name)
        if not await bus.follow_since(name, since, reader(name)):
            behind.discard(name)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while behind:
                arrived.clear()
                await arrived.wait()
    except TimeoutError as error:
        late = ", ".join(sorted(behind))
        raise BusError(f"{late}: not read to the end within {PATIENCE_SECONDS:g} s") from error
    held, past = past, None
    for message in sorted(held, key=lambda one: one.stored_at):
        on_message(message)


def stored_at(message: Message, now: datetime) -> datetime:
    """Return when the message was published, by the stream, or now."""
    return datetime.fromtimestamp(message.stored_at, UTC) if message.stored_at else now
