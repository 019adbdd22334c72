"""The parts of the JetStream API that we use, typed: streams, consumers, last messages (NATS ADR-1, ADR-31).

The API is requests with JSON on `$JS.API.…`. Speaking it directly keeps its types ours and its errors one exception.
"""

import base64
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from nats.aio.msg import Msg

from flotilla_common.bus.connection import header_lines
from flotilla_common.bus.interface import BusError, Message, PublishRefused, StreamSpec
from flotilla_common.bus.replies import Replies

API = "$JS.API"

API_SECONDS = 5.0
"""How long an API request may take before its outcome counts as unknown."""

DUPLICATE_WINDOW = timedelta(milliseconds=100)
"""We send no message ids, so the smallest window that the server accepts: it costs memory per subject."""

DELIVERY_HEARTBEAT_SECONDS = 5.0
"""How often an idle delivery says that it lives: a thousand nodes with three each are 600 messages per second."""

DELIVERY_INACTIVE_SECONDS = 30.0
"""How long the server keeps a delivery to which nobody listens: over a reconnect, not longer."""

LAST_PER_SUBJECT = "last_per_subject"
"""What the server calls the last message of every subject."""

First = str | datetime
"""What of a stream's past a consumer begins with: the server's word for it, or what was stored from a time on."""

NOT_FOUND = frozenset({10059, 10037, 10014})
"""Error codes: stream not found, no message found, consumer not found."""

WRONG_LAST_SEQUENCE = frozenset({10071, 10164})
"""Error codes: the stream's last sequence is not the expected one."""

IN_USE = 10058
"""Error code: the stream exists with another configuration."""


class StreamMissing(BusError):
    """The stream, or what was asked of it, does not exist."""


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
    subjects: dict[str, int] | None = None


class StreamInfo(msgspec.Struct):
    """What we read of a stream's state."""

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
    """The sequence in a publish acknowledgement. Raises PublishRefused or JetStreamError when it is a refusal."""
    ack = _decode_ack(message.data)
    if ack.error is None:
        return ack.seq
    if ack.error.err_code in WRONG_LAST_SEQUENCE:
        raise PublishRefused(ack.error.description)
    raise JetStreamError(ack.error.err_code, ack.error.description)


class JetStream:
    """Requests to the JetStream API."""

    def __init__(self, replies: Replies, copies: int = 1, prefix: str = API) -> None:
        """`copies`: on how many servers a stream is kept, at least. `prefix`: where the API is asked."""
        self._replies = replies
        self._copies = copies
        self._prefix = prefix

    async def stream_info(self, name: str) -> StreamInfo:
        """How the stream is. Raises StreamMissing when there is none, BusError when nobody answers."""
        return await self._call(f"STREAM.INFO.{name}", {}, StreamInfo)

    async def subjects(self, name: str) -> set[str]:
        """All subjects that hold a message."""
        found: set[str] = set()
        while True:
            request = {"subjects_filter": ">", "offset": len(found)}
            info = await self._call(f"STREAM.INFO.{name}", request, StreamInfo)
            page = info.state.subjects or {}
            found |= page.keys()
            if not page or len(found) >= info.total:
                return found

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Create it, or bring it up to date. What operators set on it, such as more replicas, stays. A stream that is
        rebuilt and lies elsewhere than it should is made again: the server moves none from disk to memory."""
        wanted = stream_config(spec)
        try:
            await self._create_stream(wanted)
        except JetStreamError as error:
            if error.code != IN_USE:
                raise
            current = (await self.stream_info(spec.name)).config
            if spec.rebuilt and current.get("storage") != wanted["storage"]:
                await self._call(f"STREAM.DELETE.{spec.name}", {}, dict)
                await self._create_stream(wanted)
                return
            if self._copies > int(current.get("num_replicas") or 1):
                wanted |= {"num_replicas": self._copies}
            if any((current.get(name) or None) != (value or None) for name, value in wanted.items()):
                await self._call(f"STREAM.UPDATE.{spec.name}", current | wanted, dict)

    async def _create_stream(self, config: dict[str, Any]) -> None:
        await self._call(f"STREAM.CREATE.{config['name']}", config | {"num_replicas": self._copies}, dict)

    async def create_consumer(self, stream: str, config: dict[str, Any]) -> str:
        """An ephemeral consumer; returns its name."""
        request = {"stream_name": stream, "config": config}
        info = await self._call(f"CONSUMER.CREATE.{stream}", request, _ConsumerInfo)
        return info.name

    async def replace_consumer(self, stream: str, name: str, config: dict[str, Any]) -> None:
        """An ephemeral consumer in place of the one of that name, if there is one. Raises BusError also when another
        one took the name meanwhile."""
        with contextlib.suppress(StreamMissing):
            await self.delete_consumer(stream, name)
        request = {"stream_name": stream, "config": config | {"name": name}, "action": "create"}
        await self._call(f"CONSUMER.CREATE.{stream}.{name}", request, _ConsumerInfo)

    async def inboxes(self, stream: str) -> set[str]:
        """Where the stream's consumers send to."""
        found: list[str] = []
        while True:
            page = await self._call(f"CONSUMER.LIST.{stream}", {"offset": len(found)}, _ConsumerPage)
            found += [one.config.deliver_subject for one in page.consumers or ()]
            if not page.consumers or len(found) >= page.total:
                return set(found)

    async def delete_consumer(self, stream: str, name: str) -> None:
        await self._call(f"CONSUMER.DELETE.{stream}.{name}", {}, dict)

    async def last_message(self, stream: str, subject: str) -> Message | None:
        """The newest message of a subject, or of all that a filter takes in, as the stream's leader has it."""
        return await self._message(stream, {"last_by_subj": subject})

    async def holds(self, stream: str, subject_filter: str, since: datetime | None = None) -> bool:
        """Whether the stream holds any message under the filter, stored since a time if one is given."""
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
    """What we need of the server's configuration of a stream (docs/adr/0024 says what is stored where)."""
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
    """The server's configuration of a consumer that sends to an inbox: what comes after a sequence, or without one what
    is to come `first`, and all that follows. `heartbeat` and `inactive` are seconds."""
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


def delivery_config(subject_filters: Sequence[str], inbox: str, after: int | None) -> dict[str, Any]:
    """Of a consumer for a reader that may not make one himself. Without flow control, which he would have to answer on
    a subject of the JetStream API: what one node gets at once is small."""
    return consumer_config(
        inbox,
        first=LAST_PER_SUBJECT,
        after=after,
        heartbeat=DELIVERY_HEARTBEAT_SECONDS,
        inactive=DELIVERY_INACTIVE_SECONDS,
        filter_subjects=list(subject_filters),
    )


def parse_headers(encoded: str) -> dict[str, str]:
    """Headers as the API returns them: base64 of a header block."""
    _, _, lines = base64.b64decode(encoded).partition(b"\r\n")
    return header_lines(lines)
