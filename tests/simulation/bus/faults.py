"""Faults of single messages between a process and the bus.

TCP neither loses nor repeats nor reorders within a connection, so most faults of a real bus are broken connections or a
server that loses data (`Server`). The remaining ones are decided here, message by message.
"""

import enum
from typing import Protocol

import msgspec


class Way(enum.Enum):
    """The direction of a message."""

    PUBLISH = "publish"  # process → server, acknowledged
    SOON = "soon"  # process → server, fire and forget
    ASK = "ask"  # process → server: stream state, last message, new consumer …
    REPLY = "reply"  # server → process: acknowledgement or answer
    DELIVER = "deliver"  # server → follower of a stream
    LIVE = "live"  # server → live subscriber


class Hop(msgspec.Struct, frozen=True):
    """One message on its way. `number` counts all of them, from 0."""

    number: int
    way: Way
    client: str
    subject: str


class Treatment(msgspec.Struct, frozen=True):
    """The treatment of one message.

    Of several replies the first counts; a delayed message delays all that follow it on its connection.
    """

    times: int = 1  # how often it arrives; 0: never
    delay: float = 0.0

    @property
    def lost(self) -> bool:
        """It never arrives."""
        return self.times == 0


UNDISTURBED = Treatment()


class Faults(Protocol):
    """Decides."""

    def treatment(self, hop: Hop) -> Treatment: ...
