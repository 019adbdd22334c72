"""A JetStream delivery to an inbox: numbered messages, and heartbeats that say how many were sent."""

import msgspec

from flotilla_common.bus.interface import Message


class Object(msgspec.Struct, frozen=True):
    """A message of the stream."""

    message: Message
    number: int  # of the delivery, from 1 on without a gap
    sequence: int  # of the stream


class Heartbeat(msgspec.Struct, frozen=True):
    """A heartbeat: the delivery is alive; `sent` messages were sent so far, if it says so."""

    sent: int | None


class Ended(msgspec.Struct, frozen=True):
    """The server ended the delivery."""

    why: str


def read_delivery(message: Message) -> Object | Heartbeat | Ended:
    """The message from the inbox, parsed. Raises ValueError when no server sends such a message."""
    status = message.headers.get("Status")
    if status == "100":
        last = message.headers.get("Nats-Last-Consumer")
        return Heartbeat(None if last is None else int(last))
    if status is not None:
        return Ended(f"status {status} {message.headers.get('Description', '')}".strip())
    fields = message.reply.split(".")  # $JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<number>.<time>.<pending>
    if len(fields) < 9:
        raise ValueError(f"not a delivery: {message.subject}")
    # The long form of the subject has a domain and an account in front, and a token behind.
    sequence, number, _, pending = fields[5:9] if len(fields) == 9 else fields[7:11]
    return Object(msgspec.structs.replace(message, pending=int(pending)), int(number), int(sequence))
