"""The watcher asks JetStream for the user that only reads."""

import asyncio

import msgspec

from flotilla_common.bus.interface import Message
from flotilla_watcher.readers import REQUESTS, serve_readonly
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock

INBOX = "_INBOX_reader.1"
MARK = {"config": {"metadata": {"flotilla.user": "reader"}}}


class Bus(FakeBus):
    """A bus with consumers."""

    def __init__(self, consumer: object = None) -> None:
        super().__init__()
        self._consumer = consumer

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        return msgspec.json.encode(self._consumer)


def asked(bus: Bus, verb: str, reply: str = INBOX, times: int = 1) -> list[bytes | None]:
    async def ask() -> list[bytes | None]:
        await serve_readonly(bus, FakeClock())
        message = Message(subject=f"reader.v1.{verb}", data=b"{}", reply=reply)
        return [await bus.servers[0].on_request(message) for _ in range(times)]

    return asyncio.run(ask())


def test_the_server_answers_the_reader_itself() -> None:
    bus = Bus()
    assert asked(bus, "STREAM.INFO.act") == [None]
    assert bus.handed_on == [Message(subject="$JS.API.STREAM.INFO.act", data=b"{}", reply=INBOX)]


def test_who_wants_the_answer_elsewhere_gets_none() -> None:
    bus = Bus()
    assert asked(bus, "STREAM.INFO.act", "act.v1.cloneset.pods.a.b") == [None]
    assert asked(bus, "STREAM.DELETE.act", "_INBOX.cloneset.1") == [None]
    assert not bus.handed_on


def test_a_refusal_says_why() -> None:
    bus = Bus()
    (answer,) = asked(bus, "STREAM.PURGE.act")
    assert answer is not None
    assert "read-only" in msgspec.json.decode(answer)["error"]["description"]
    assert not bus.handed_on


def test_consumers_of_others_are_left_alone() -> None:
    for verb in ("CONSUMER.MSG.NEXT.act.one", "CONSUMER.DELETE.act.one"):
        other, own = Bus({"config": {}}), Bus(MARK)
        assert b"not this user's own" in (asked(other, verb)[0] or b"")
        assert asked(own, verb) == [None]
        assert (len(other.handed_on), len(own.handed_on)) == (0, 1)


def test_readers_cannot_keep_the_watcher_busy() -> None:
    answers = asked(Bus(), "STREAM.LIST", times=REQUESTS + 1)
    assert answers[:REQUESTS] == [None] * REQUESTS
    assert b"too many requests" in (answers[-1] or b"")
