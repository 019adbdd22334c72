"""A bus with prepared messages, and a clock with scheduled events: the input of `flotilla bundle`."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from flotilla_cli.bundle.capture import Capture
from flotilla_cli.bundle.records import Bundle, read, write
from flotilla_cloneset.cloneset.controller import CONTROLLER as CLONE_SETS
from flotilla_common.bus.interface import Bus, Message, OnMessage
from flotilla_common.control.keystate import Key
from flotilla_common.control.replay_controller import Planning
from flotilla_common.control.spec import ControllerSpec
from tests.support.fake_bus import matches
from tests.support.fake_clock import FakeClock
from tests.unit.control.fakes import NoChance

KEY = ("shop", "web")
PLANNING = Planning(gates="PodWebhook=false")


class ScriptedBus:
    """Streams as one list; live messages reach all subscribers."""

    def __init__(self, held: list[Message]) -> None:
        self.held = held
        self.listeners: list[tuple[str, OnMessage]] = []
        self.while_reading: Callable[[], None] = lambda: None

    async def get_last(self, stream: str, subject: str) -> Message | None:
        return next((message for message in reversed(self.held) if matches(subject, message.subject)), None)

    async def history(self, stream: str, subject_filter: str, on_message: OnMessage) -> None:
        self.while_reading()
        for message in self.held:
            if matches(subject_filter, message.subject):
                on_message(message)

    async def subscribe(self, subject_filter: str, on_message: OnMessage) -> None:
        self.listeners.append((subject_filter, on_message))

    def publish(self, message: Message) -> None:
        for subject_filter, listener in self.listeners:
            if matches(subject_filter, message.subject):
                listener(message)

    def beat(self, kind: str, planning: Planning) -> None:
        """Publish the settings of a replica."""
        beat = {"service": "s", "replica": "r1", "version": "1.0", "planning": {kind: planning}}
        self.publish(Message(subject="heartbeat.v1.s.r1", data=msgspec.json.encode(beat)))


class Timeline(FakeClock):
    """A clock that lets things happen at set times."""

    def __init__(self) -> None:
        super().__init__()
        self.events: dict[float, Callable[[], None]] = {}

    async def sleep(self, seconds: float) -> None:
        until = self.time + seconds
        for at in sorted(at for at in self.events if self.time <= at <= until):
            self.time = at
            self.events.pop(at)()
        self.time = until
        await super().sleep(0)


def capture(
    bus: ScriptedBus, clock: FakeClock, *, spec: ControllerSpec[Any, Any] = CLONE_SETS, key: Key = KEY
) -> Capture:
    return Capture(cast("Bus", bus), clock, NoChance(), spec, *key)


async def record(
    held: list[Message],
    live: Mapping[float, Message] | None = None,
    seconds: float = 3,
    *,
    spec: ControllerSpec[Any, Any] = CLONE_SETS,
    key: Key = KEY,
    planning: Planning = PLANNING,
) -> Bundle:
    """Return a recording of this many seconds. `live`: messages to publish, by delay."""
    bus, clock = ScriptedBus(held), Timeline()
    for at, message in (live or {}).items():
        clock.events[at] = lambda message=message: bus.publish(message)
    clock.events[2.5] = lambda: bus.beat(spec.resource.plural, planning)
    bundle = await capture(bus, clock, spec=spec, key=key).run(seconds)
    assert read(write(bundle)) == bundle
    return bundle
