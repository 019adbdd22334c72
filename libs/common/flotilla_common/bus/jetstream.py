"""Typed access to the parts of the JetStream API in use: streams, consumers, last messages (NATS ADR-1, ADR-31).

The API is requests with JSON on `$JS.API.…`. Using it directly keeps its types ours and its errors one exception.
"""

import base64
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from nats.aio.msg import Msg

from flotilla_common.bus import subjects
from flotilla_common.bus.connection import header_lines
from flotilla_common.bus.interface import BusError, Message, PublishRefused, StreamSpec
from flotilla_common.bus.requests import Requests

API = "$JS.API"

API_SECONDS = 5.0
"""Time that an API request may take before its outcome counts as unknown."""

DUPLICATE_WINDOW = timedelta(milliseconds=100)
"""The smallest window that the server accepts: it costs memory per subject, and we send no message ids."""

DELIVERY_HEARTBEAT_SECONDS = 5.0
"""Interval of an idle delivery's heartbeats: a thousand nodes with three each are 600 messages per second."""

DELIVERY_INACTIVE_SECONDS = 30.0
"""Time that the server keeps a delivery without subscribers: longer than a reconnect takes."""

LAST_PER_SUBJECT = "last_per_subject"
"""The server's name for delivery of the last message of every subject."""

First = str | datetime
"""Start of a consumer: one of the server's delivery policies, or the time from which stored messages are read."""

NOT_FOUND = frozenset({10059, 10037, 10014})
"""Error codes: stream not found, no message found, consumer not found."""

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
"""Error codes: the stream's last sequence is not the expected one."""

NOT_DELETED = 10057
"""Error code: the message to delete does not exist."""

IN_USE = 10058
"""Error code: the stream exists with another configuration."""


class StreamMissing(BusError):
    """The requested stream, message or consumer does not exist."""


class JetStreamError(BusError):
    """The server refused a request."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Error(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _State(msgspec.Struct):
    first_seq: int = 0
    last_seq: int = 0
    messages: int = 0
    subjects: dict[str, int] | None = None


class StreamInfo(msgspec.Struct):
    """The part of a stream's state that is read."""

    created: str = ""
    config: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    state: _State = msgspec.field(default_factory=_State)
    total: int = 0


class _ConsumerConfig(msgspec.Struct):
    deliver_subject: str = ""


class _ConsumerInfo(msgspec.Struct):
    name: str = ""
    config: _ConsumerConfig = msgspec.field(default_factory=_ConsumerConfig)


class _ConsumerPage(msgspec.Struct):
    consumers: list[_ConsumerInfo] | None = None
    total: int = 0


class _Stored(msgspec.Struct):
    subject: str = ""
    seq: int = 0
    hdrs: str = ""
    data: str = ""
    time: datetime | None = None


class _StoredMessage(msgspec.Struct):
    message: _Stored


class _Refusal(msgspec.Struct):
    error: _Error | None = None


T = TypeVar("T")


class _Ack(msgspec.Struct):
    seq: int = 0
    error: _Error | None = None


_decode_ack = msgspec.json.Decoder(_Ack).decode


def acknowledged(message: Msg) -> int:
    """Return the sequence of a publish acknowledgement. Raises PublishRefused or JetStreamError for a refusal."""
    ack = _decode_ack(message.data)
    if ack.error is None:
        return ack.seq
    if ack.error.err_code in WRONG_LAST_SEQUENCE:
        raise PublishRefused(ack.error.description)
    raise JetStreamError(ack.error.err_code, ack.error.description)


class JetStream:
    """A client of the JetStream API."""

    def __init__(self, replies: Requests, copies: int = 1, prefix: str = API) -> None:
        """Use `prefix` for requests, and keep each stream on `copies` servers at least."""
        self._replies = replies
        self._copies = copies
        self._prefix = prefix

    async def stream_info(self, name: str) -> StreamInfo:
        """Return the stream's state. Raises StreamMissing when there is none, BusError when no reply comes."""
        return await self._call(f"STREAM.INFO.{name}", {}, StreamInfo)

    async def subjects(self, name: str) -> set[str]:
        """Return all subjects that hold a message."""
        found: set[str] = set()
        while True:
            request = {"subjects_filter": ">", "offset": len(found)}
            info = await self._call(f"STREAM.INFO.{name}", request, StreamInfo)
            page = info.state.subjects or {}
            found |= page.keys()
            if not page or len(found) >= info.total:
                return found

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Create the stream, or update it, keeping what operators set on it, such as more replicas.

        A `rebuilt` stream with the wrong storage is created again: the server moves no stream from disk to memory.
        """
        wanted = stream_config(spec)
        try:
            await self._create_stream(wanted)
        except JetStreamError as error:
            if error.code != IN_USE:
                raise
            current = (await self.stream_info(spec.name)).config
            if spec.rebuilt and current.get("storage") != wanted["storage"]:
                await self.delete_stream(spec.name)
                await self._create_stream(wanted)
                return
            if self._copies > int(current.get("num_replicas") or 1):
                wanted |= {"num_replicas": self._copies}
            if any((current.get(name) or None) != (value or None) for name, value in wanted.items()):
                await self._call(f"STREAM.UPDATE.{spec.name}", current | wanted, dict)

    async def delete_stream(self, name: str) -> None:
        with contextlib.suppress(StreamMissing):
            await self._call(f"STREAM.DELETE.{name}", {}, dict)

    async def _create_stream(self, config: dict[str, Any]) -> None:
        await self._call(f"STREAM.CREATE.{config['name']}", config | {"num_replicas": self._copies}, dict)

    async def create_consumer(self, stream: str, config: dict[str, Any]) -> str:
        """Create an ephemeral consumer and return its name."""
        request = {"stream_name": stream, "config": config}
        info = await self._call(f"CONSUMER.CREATE.{stream}", request, _ConsumerInfo)
        return info.name

    async def replace_consumer(self, stream: str, name: str, config: dict[str, Any]) -> None:
        """Create an ephemeral consumer in place of the one of that name, if it exists.

        Raises BusError also when another consumer took the name meanwhile.
        """
        with contextlib.suppress(StreamMissing):
            await self.delete_consumer(stream, name)
        request = {"stream_name": stream, "config": config | {"name": name}, "action": "create"}
        await self._call(f"CONSUMER.CREATE.{stream}.{name}", request, _ConsumerInfo)

    async def inboxes(self, stream: str) -> set[str]:
        """Return the inboxes that the stream's consumers send to."""
        found: list[str] = []
        while True:
            page = await self._call(f"CONSUMER.LIST.{stream}", {"offset": len(found)}, _ConsumerPage)
            found += [one.config.deliver_subject for one in page.consumers or ()]
            if not page.consumers or len(found) >= page.total:
                return set(found)

    async def delete_consumer(self, stream: str, name: str) -> None:
        await self._call(f"CONSUMER.DELETE.{stream}.{name}", {}, dict)

    async def last_message(self, stream: str, subject: str) -> Message | None:
        """Return the newest message of a subject, or among all that match a filter, as the stream's leader has it."""
        return await self._message(stream, {"last_by_subj": subject})

    async def oldest_message(self, stream: str) -> Message | None:
        """Return the message with the lowest sequence, as the stream's leader has it."""
        return await self._message(stream, {"seq": 1, "next_by_subj": ">"})

    async def delete_message(self, stream: str, sequence: int) -> None:
        """Delete one message, if it still exists, without overwriting it on disk."""
        try:
            await self._call(f"STREAM.MSG.DELETE.{stream}", {"seq": sequence, "no_erase": True}, dict)
        except JetStreamError as error:
            if error.code != NOT_DELETED:
                raise

    async def holds(self, stream: str, subject_filter: str, since: datetime | None = None) -> bool:
        """Report whether the stream holds any message under the filter, stored since a time if one is given."""
        start = {"seq": 1} if since is None else {"start_time": since.isoformat()}
        return await self._message(stream, start | {"next_by_subj": subject_filter}) is not None

    async def _message(self, stream: str, query: dict[str, Any]) -> Message | None:
        try:
            stored = (await self._call(f"STREAM.MSG.GET.{stream}", query, _StoredMessage)).message
        except StreamMissing:
            return None
        data, headers = base64.b64decode(stored.data), parse_headers(stored.hdrs)
        when = stored.time.timestamp() if stored.time else 0
        return Message(subject=stored.subject, data=data, headers=headers, sequence=stored.seq, stored_at=when)

    async def _call(self, subject: str, request: dict[str, Any], reply: type[T]) -> T:
        def read(message: Msg) -> T:
            problem = msgspec.json.decode(message.data, type=_Refusal).error
            if problem is None:
                return msgspec.json.decode(message.data, type=reply)
            if problem.err_code in NOT_FOUND:
                raise StreamMissing(f"{subject}: {problem.description}")
            raise JetStreamError(problem.err_code, f"{subject}: {problem.description}")

        payload = msgspec.json.encode(request)
        return await (await self._replies.send(f"{self._prefix}.{subject}", payload, read, timeout=API_SECONDS))


def stream_config(spec: StreamSpec) -> dict[str, Any]:
    """Return the server's configuration of a stream, where it matters (docs/adr/0024: what is stored where)."""
    republish = {"republish": {"src": spec.republish[0], "dest": spec.republish[1]}} if spec.republish else {}
    return republish | {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "storage": "memory" if spec.rebuilt else "file",
        "retention": "limits",
        "discard": "old",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": spec.max_bytes,
        "max_age": int(spec.max_age_seconds * 1e9),
        "max_msg_size": -1,
        "max_msgs_per_subject": 1 if spec.last_value else -1,
        "duplicate_window": int(DUPLICATE_WINDOW.total_seconds() * 1e9),
        "allow_direct": True,
        "allow_msg_ttl": spec.last_value,
    }


def consumer_config(
    inbox: str, *, first: First, after: int | None, heartbeat: float, inactive: float, **more: Any
) -> dict[str, Any]:
    """Return the server's configuration of a consumer that sends to an inbox.

    It starts after the sequence `after`, or without that at `first`. `heartbeat` and `inactive` are seconds.
    """
    return _start(first, after) | {
        "deliver_subject": inbox,
        "ack_policy": "none",
        "max_deliver": 1,
        "replay_policy": "instant",
        "idle_heartbeat": int(heartbeat * 1e9),
        "inactive_threshold": int(inactive * 1e9),
        "mem_storage": True,
        "num_replicas": 1,
        **more,
    }


def _start(first: First, after: int | None) -> dict[str, Any]:
    if after is not None:
        return {"deliver_policy": "by_start_sequence", "opt_start_seq": after + 1}
    if isinstance(first, datetime):
        return {"deliver_policy": "by_start_time", "opt_start_time": first.isoformat()}
    return {"deliver_policy": first}


def filters(subject_filters: Sequence[str]) -> dict[str, Any]:
    """Return the part of a consumer's configuration that limits it to subjects; a single `>` has a shorter path."""
    if len(subject_filters) == 1:
        return {"filter_subject": subject_filters[0]}
    return {"filter_subjects": list(subject_filters)}


def delivery_config(subject_filters: Sequence[str], inbox: str, after: int | None) -> dict[str, Any]:
    """Return the configuration of a consumer on behalf of a reader that may not create one.

    It has no flow control, which the reader would have to answer on a subject of the JetStream API: a node gets little
    at once.
    """
    return consumer_config(
        inbox,
        first=LAST_PER_SUBJECT,
        after=after,
        heartbeat=DELIVERY_HEARTBEAT_SECONDS,
        inactive=DELIVERY_INACTIVE_SECONDS,
        filter_subjects=list(subject_filters),
    )


def renewal_headers(stream: str, message: Message) -> dict[str, str]:
    """Return the headers with which a message is stored again, only while it is the last one of its subject.

    The name of the stream makes other streams refuse it, to which the server republishes it.
    """
    return {
        **message.headers,
        subjects.AGAIN: "true",
        "Nats-Expected-Stream": stream,
        "Nats-Expected-Last-Subject-Sequence": str(message.sequence),
    }


def parse_headers(encoded: str) -> dict[str, str]:
    """Decode headers as the API returns them: base64 of a header block."""
    _, _, lines = base64.b64decode(encoded).partition(b"\r\n")
    return header_lines(lines)
