"""Sessions that were signed out, until their cookies expire: a copied cookie stops working with its session.

They are published on the stream `act`, which keeps them for a day. So all replicas end them, also those that start
later; what was ended without a bus is published when there is one.
"""

import hashlib
from datetime import datetime, timedelta

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, Follow, Message
from flotilla_common.clock import Clock
from flotilla_console.access.expiring import Expiring
from flotilla_insight.published import Act

MOST = 10_000
"""Maximum number of ended sessions that are kept."""

KIND, ACTION = "Session", "end"


class EndedSessions:
    """The digests of the ids of ended sessions."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        """Create an empty set; `seconds` is the maximum lifetime of a session."""
        self._clock = clock
        self._seconds = seconds
        self._ended: Expiring[str, bool] = Expiring(MOST)
        self._own: dict[str, datetime] = {}  # those that this replica has ended, and when
        self._bus: Bus | None = None
        self._service = ""

    def has(self, session: str) -> bool:
        """Report whether the session of this id was ended."""
        now = self._clock.now().timestamp()
        return self._ended.get(_digest(session), now, self._seconds) is not None

    def end(self, session: str) -> None:
        """End the session of this id."""
        digest, now = _digest(session), self._clock.now()
        self._ended.put(digest, True, now.timestamp())
        lasting = {one: at for one, at in self._own.items() if now - at < timedelta(seconds=self._seconds)}
        self._own = lasting | {digest: now}
        self._publish(digest)

    async def share(self, bus: Bus, service: str) -> Follow:
        """Publish ended sessions in the name of the service, and end here what its other replicas publish."""
        self._bus, self._service = bus, service
        bus.on_connected(self._publish_own)
        self._publish_own()
        everything = subjects.ended_session(service, "*")
        return await bus.follow(subjects.ACT_STREAM.name, [everything], self._take, self._publish_own)

    def _take(self, message: Message) -> None:
        # Counting from now is safe: the cookie expires no later than that.
        self._ended.put(message.subject.rpartition(".")[2], True, self._clock.now().timestamp())

    def _publish_own(self) -> None:
        """Publish all again: the bus may have been away, or wiped."""
        for digest in self._own:
            self._publish(digest)

    def _publish(self, digest: str) -> None:
        if self._bus is None:
            return
        act = Act(at=self._own[digest], service=self._service, action=ACTION, kind=KIND, name=digest, outcome="Ok")
        self._bus.publish_soon(subjects.ended_session(self._service, digest), msgspec.json.encode(act))


def _digest(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()[:32]
