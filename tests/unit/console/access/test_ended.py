"""Sessions that end on all replicas, by the record of writes on the bus."""

import json

from flotilla_common.bus.interface import Message
from flotilla_common.bus.subjects import ACT_STREAM
from flotilla_console.access.ended import EndedSessions
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock

HOUR = 3600.0
SESSION, OTHER = "the-id", "another-id"


class Bus(FakeBus):
    """A bus that stores records."""

    def publish_soon(self, subject: str, data: bytes) -> None:
        if self.connected:
            self._store(subject, data, {}, None)

    def connect(self) -> None:
        """Be there again."""
        self.connected = True
        for callback in self._on_connected:
            callback()


class Scene:
    """A bus, and replicas of the console on it."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.clock = FakeClock()

    async def replica(self) -> EndedSessions:
        made = EndedSessions(self.clock, HOUR)
        await made.share(self.bus, "console")
        return made

    @property
    def records(self) -> list[Message]:
        """Return what is on the bus."""
        return list(self.bus.streams[ACT_STREAM.name].messages.values())


async def scene_with_records() -> Scene:
    made = Scene()
    await made.bus.ensure_stream(ACT_STREAM)
    return made


async def test_other_replicas_end_it_too_also_those_that_start_later():
    scene = await scene_with_records()
    one, two = await scene.replica(), await scene.replica()
    one.end(SESSION)
    later = await scene.replica()
    assert [each.has(SESSION) for each in (one, two, later)] == [True, True, True]
    assert [each.has(OTHER) for each in (one, two, later)] == [False, False, False]


async def test_its_id_is_not_on_the_bus():
    scene = await scene_with_records()
    (await scene.replica()).end(SESSION)
    (message,) = scene.records
    body = json.loads(message.data)
    assert SESSION not in message.subject + message.data.decode()
    assert message.subject == f"act.v1.console.sessions._.{body['name']}"
    assert (body["service"], body["action"], body["kind"]) == ("console", "end", "Session")


async def test_what_was_ended_without_a_bus_is_published_when_there_is_one():
    scene = await scene_with_records()
    one, two = await scene.replica(), await scene.replica()
    scene.bus.connected = False
    one.end(SESSION)
    assert not two.has(SESSION)
    scene.bus.connect()
    assert two.has(SESSION)


async def test_what_was_ended_before_the_bus_was_known_is_published():
    scene = await scene_with_records()
    one, two = EndedSessions(scene.clock, HOUR), await scene.replica()
    one.end(SESSION)
    await one.share(scene.bus, "console")
    assert two.has(SESSION)


async def test_it_is_known_for_as_long_as_a_cookie_may_live():
    scene = await scene_with_records()
    one, two = await scene.replica(), await scene.replica()
    one.end(SESSION)
    scene.clock.time = HOUR - 1
    assert (one.has(SESSION), two.has(SESSION)) == (True, True)
    scene.clock.time = HOUR
    assert (one.has(SESSION), two.has(SESSION)) == (False, False)


async def test_a_wiped_bus_begins_no_session_and_has_the_ends_again():
    scene = await scene_with_records()
    one, two = await scene.replica(), await scene.replica()
    one.end(SESSION)
    scene.bus.streams[ACT_STREAM.name].lose_messages()
    for follow in scene.bus.follows:
        follow.on_reset()
    later = await scene.replica()
    assert [each.has(SESSION) for each in (one, two, later)] == [True, True, True]


async def test_a_record_of_another_release_ends_the_session_all_the_same():
    scene = await scene_with_records()
    one, two = await scene.replica(), await scene.replica()
    one.end(SESSION)
    (message,) = scene.records
    other = await scene_with_records()
    three = await other.replica()
    other.bus.publish_soon(message.subject, b"[]")
    assert [each.has(SESSION) for each in (two, three)] == [True, True]
