"""The bus of the site: in memory, with subscriptions, and with streams that keep every message."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from flotilla_common.bus.interface import BusError, Message, OnMessage, StreamSpec
from tests.support.fake_bus import FakeBus, FakeFollow, FakeStream, matches
from tests.testkit.documents import Json

CREATED = "2026-11-01T00:00:00Z"


@dataclass
class Subscription:
    """A subscription outside streams."""

    subject_filter: str
    on_message: OnMessage
    healthy: bool = True

    async def stop(self) -> None:
        self.healthy = False


class SiteBus(FakeBus):
    """A bus in memory that answers everything that the console asks."""

    api = "$JS.API"
    """The prefix of requests about streams, as NatsBus has it."""

    def __init__(self) -> None:
        super().__init__()
        self.subscriptions: list[Subscription] = []
        self.records: defaultdict[str, list[Message]] = defaultdict(list)
        """Messages of streams that keep more than the last one of a subject, oldest first."""

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        if not self.connected or not subject.startswith(self.api):
            return await super().request(subject, data, timeout)
        if subject != f"{self.api}.STREAM.LIST":
            return b"{}"
        return msgspec.json.encode({"streams": [self._about(one) for one in self.streams.values()]})

    def _about(self, stream: FakeStream) -> Json:
        """Return what a server says about a stream."""
        counts = {"messages": len(stream.messages), "bytes": 0, "first_seq": stream.first, "last_seq": stream.sequence}
        config = {"name": stream.spec.name, "subjects": stream.spec.subjects, "max_bytes": -1, "max_age": 0}
        times = {"first_ts": CREATED, "last_ts": CREATED, "consumer_count": 0}
        return {"config": config, "created": CREATED, "state": counts | times}

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> Subscription:
        made = Subscription(subject_filter, on_message)
        self.subscriptions.append(made)
        return made

    def say(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Deliver a message to subscriptions, which get those of streams, too."""
        message = Message(subject=subject, data=data, headers=dict(headers or {}))
        for one in list(self.subscriptions):
            if one.healthy and matches(one.subject_filter, subject):
                one.on_message(message)

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        sequence = await super().publish(subject, data, headers)
        self.say(subject, data, headers)
        return sequence

    def record(self, spec: StreamSpec, subject: str, data: bytes, at: float) -> None:
        """Add a message of the past to a stream."""
        kept = self.records[spec.name]
        kept.append(Message(subject=subject, data=data, sequence=len(kept) + 1, stored_at=at))

    async def history(self, stream: str, subject_filter: str, on_message: OnMessage) -> None:
        if not self.connected:
            raise BusError("not connected")
        for message in self.records[stream]:
            if matches(subject_filter, message.subject):
                on_message(message)

    async def scan(self, stream: str, subject_filter: str, on_message: OnMessage, on_reset: Callable[[], None]) -> None:
        """Pass on what `history` does, as NatsBus has it."""
        await self.history(stream, subject_filter, on_message)

    async def get_oldest(self, stream: str) -> Message | None:
        kept = self.records[stream]
        return kept[0] if kept else await super().get_oldest(stream)

    def replay(self, follow: FakeFollow) -> None:
        super().replay(follow)
        for message in self.records[follow.stream]:
            if follow.takes(message.subject):
                follow.on_message(message)
