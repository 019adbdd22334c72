"""Events as text of a stream (text/event-stream)."""

import msgspec

from flotilla_console.blocks.types import Notice


class Hello(msgspec.Struct, frozen=True):
    """The first event: the name under which the browser asks for views."""

    stream: str


class Beat(msgspec.Struct, frozen=True):
    """A sign of life, with the age of what is shown."""

    now: float
    as_of: float
    banners: tuple[Notice, ...]


class Failed(msgspec.Struct, frozen=True):
    """A page that cannot be rendered; the browser has an older version of it."""

    path: str


class SignedOut(msgspec.Struct, frozen=True):
    """The last event of a stream whose reader is not signed in any more."""

    reason: str
    href: str


def encoded(name: str, data: msgspec.Struct) -> bytes:
    """Return an event without its number. JSON has no line breaks, so the data is one line."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))


def numbered(identity: str, event: bytes) -> bytes:
    """Return an event with the identity that a browser continues from."""
    return b"id: %s\n%s" % (identity.encode(), event)
