"""The file format: JSON lines.

A header, the messages known before the recording, its beginning, the messages during it, its end. Messages are in the
order of arrival, with the published bodies, so that `jq` and `grep` are enough to read a bundle. `flotilla replay`
plans it again.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import Message
from flotilla_common.control.replay_controller import Planning

FORMAT = 2
"""Raised when older releases cannot read the file any more.

2: the subjects of pods say whose they are, and messages tell that pods have moved (docs/adr/0035).
"""

READABLE = (1, FORMAT)
"""The formats that this release reads."""


class UnreadableBundle(Exception):
    """The file is not a bundle, or one that this release cannot read."""


class Replica(msgspec.Struct, frozen=True):
    """A replica with a heartbeat."""

    service: str
    replica: str
    version: str = ""


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="bundle", tag_field="record"):
    """The object of the bundle. Without `planning`, no service of the kind had a heartbeat, and defaults apply."""

    format: int = FORMAT
    version: str  # of the command that wrote the file
    resource: Resource
    namespace: str
    name: str
    redacted: int = 0  # texts that were replaced
    planning: Planning | None = None
    replicas: tuple[Replica, ...] = ()


class Recorded(msgspec.Struct, frozen=True, kw_only=True, tag="message", tag_field="record", omit_defaults=True):
    """One message with its time of arrival on this machine's clock."""

    at: datetime
    subject: str
    headers: dict[str, str] = {}
    body: Json = {}

    def message(self) -> Message:
        """Return the message as it was on the bus."""
        return Message(
            subject=self.subject, headers=self.headers, data=msgspec.json.encode(self.body) if self.body else b""
        )


class Begin(msgspec.Struct, frozen=True, tag="begin", tag_field="record"):
    """The beginning: every message after it was recorded; those before are the content of the streams."""

    at: datetime


class End(msgspec.Struct, frozen=True, tag="end", tag_field="record"):
    """The recording is complete up to this time."""

    at: datetime


Record = Header | Recorded | Begin | End
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file."""

    header: Header
    known: tuple[Recorded, ...]
    begin: datetime
    heard: tuple[Recorded, ...]
    end: datetime


def write(bundle: Bundle) -> bytes:
    """Return the file of a bundle."""
    records: list[Record] = [
        bundle.header,
        *bundle.known,
        Begin(bundle.begin),
        *bundle.heard,
        End(bundle.end),
    ]
    return b"".join(_encode(record) + b"\n" for record in records)


def read(data: bytes) -> Bundle:
    """Return the bundle in a file. Raises UnreadableBundle with the line that is wrong."""
    records = _lines(data)
    if not records or not isinstance(header := records.pop(0), Header):
        raise UnreadableBundle("it does not begin with a bundle's header")
    if header.format not in READABLE:
        formats = " and ".join(map(str, READABLE))
        raise UnreadableBundle(f"its format is {header.format}, this release reads {formats}")
    begin = next((record.at for record in records if isinstance(record, Begin)), None)
    end = next((record.at for record in records if isinstance(record, End)), None)
    if begin is None or end is None:
        raise UnreadableBundle("it is incomplete: its beginning or end is missing")
    split = next(index for index, record in enumerate(records) if isinstance(record, Begin))
    return Bundle(
        header=header, known=_messages(records[:split]), begin=begin, heard=_messages(records[split:]), end=end
    )


def _messages(records: Iterable[Record]) -> tuple[Recorded, ...]:
    return tuple(record for record in records if isinstance(record, Recorded))


def _lines(data: bytes) -> list[Record]:
    found: list[Record] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            found.append(_decode(line))
        except msgspec.MsgspecError as error:
            raise UnreadableBundle(f"line {number}: {error}") from error
    return found
