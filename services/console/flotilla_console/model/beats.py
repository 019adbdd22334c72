"""The heartbeats of all replicas: who is alive."""

import contextlib
from collections.abc import Callable, Mapping

import msgspec

from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, NODE_AGENT, Heartbeat
from flotilla_common.bus.interface import Bus, Message
from flotilla_common.bus.subjects import untoken
from flotilla_common.clock import Clock
from flotilla_common.control.replay_controller import Planning

ALIVE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A replica whose last heartbeat is older is taken for dead."""

FORGOTTEN_SECONDS = 3600.0

_decode = msgspec.json.Decoder(Heartbeat).decode


class Beat(msgspec.Struct, frozen=True):
    """The last heartbeat of a replica, and its age in seconds."""

    heartbeat: Heartbeat
    age: float

    @property
    def alive(self) -> bool:
        """Report whether it came recently enough."""
        return self.age <= ALIVE_SECONDS


class Beats:
    """The last heartbeat of each replica of the last hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[tuple[str, str], tuple[float, Heartbeat]] = {}
        self._since = clock.monotonic()

    async def subscribe(self, bus: Bus) -> None:
        """Receive heartbeats from now on."""
        self._since = self._clock.monotonic()
        await bus.subscribe("heartbeat.v1.*.*", self.take)

    def take(self, message: Message) -> None:
        """Keep a heartbeat, under the sender of its subject, on which no other may publish."""
        _, _, service, replica = message.subject.split(".", 3)
        try:
            beat = _decode(message.data)
        except (msgspec.MsgspecError, RecursionError):
            return
        own = untoken(replica) if service == NODE_AGENT else beat.replica
        now = self._clock.monotonic()
        self._last[service, own] = now, msgspec.structs.replace(beat, service=service, replica=own)

    def all(self, keep: Callable[[Heartbeat], bool] = lambda _: True) -> list[Beat]:
        """Return the last heartbeats, by service and replica."""
        now = self._clock.monotonic()
        for key in [key for key, (at, _) in self._last.items() if now - at > FORGOTTEN_SECONDS]:
            del self._last[key]
        return [Beat(beat, now - at) for _, (at, beat) in sorted(self._last.items()) if keep(beat)]

    def planning(self) -> Mapping[str, Planning]:
        """Return the settings that services plan with, by plural of the kind; one that cannot be read is left out."""
        found: dict[str, Planning] = {}
        for beat in self.all():
            for plural, given in beat.heartbeat.planning.items():
                with contextlib.suppress(msgspec.MsgspecError):
                    found[plural] = msgspec.convert(given, Planning)
        return found

    def is_silent(self, service: str) -> bool:
        """Report whether no replica of the service is alive, though there was time for a heartbeat."""
        now = self._clock.monotonic()
        if now - self._since <= ALIVE_SECONDS:
            return False
        return not any(own == service and now - at <= ALIVE_SECONDS for (own, _), (at, _) in self._last.items())
