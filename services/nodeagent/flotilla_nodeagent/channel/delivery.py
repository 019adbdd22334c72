"""What a JetStream delivery to an inbox looks like: objects with numbers, and heartbeats that speak of them."""

import msgspec

from flotilla_common.bus.interface import Message


class Object(msgspec.Struct, frozen=True):
    """A message of the stream."""

    message: Message
    number: int  # of the delivery, from 1 on without a gap
    sequence: int  # of the stream


class Heartbeat(msgspec.Struct, frozen=True):
    """The delivery lives; `sent` messages have come so far, if it says so."""

    sent: int | None


class Ended(msgspec.Struct, frozen=True):
    """The server ended the delivery."""

    why: str


def read_delivery(message: Message) -> Object | Heartbeat | Ended:
    """What came. ValueError for a message that no server sends."""
    status = message.headers.get("Status")
    if status == "100":
        last = message.headers.get("Nats-Last-Consumer")
        return Heartbeat(None if last is None else int(last))
    if status is not None:
        return Ended(f"status {status} {message.headers.get('Description', '')}".strip())
    fields = message.reply.split(".")  # $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<number>.<time>.<pending>
    if len(fields) < 9:
        raise ValueError(f"not a delivery: {message.subject}")
    return Object(message, int(fields[-3]), int(fields[-4])) if len(fields) == 9 else _domained(message, fields)


def _domained(message: Message, fields: list[str]) -> Object:
    """The long form of the subject: with a domain and an account in front, and a token behind."""
    return Object(message, int(fields[8]), int(fields[7]))
