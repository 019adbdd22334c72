"""A service's context over fakes: an apiserver that holds documents, a bus and a clock in memory."""

import asyncio
from typing import Any, cast

from flotilla_common.bus.interface import Bus
from flotilla_common.control.controller import Controller
from flotilla_common.control.keystate import Key
from flotilla_common.control.shards import Shards
from flotilla_common.health import Health
from flotilla_common.kube.interface import Api
from flotilla_common.live import LiveContext
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.control.fakes import NoChance


class Woken:
    """A stand-in for a controller that records the enqueued keys."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    def enqueue(self, namespace: str, name: str) -> None:
        self.keys.append((namespace, name))

    @property
    def controller(self) -> Controller[Any]:
        return cast("Controller[Any]", self)


def context(api: FakeApi, *, gates: str = "", **settings: Any) -> Context:
    """Return the context of a service called `test`."""
    given = Settings(feature_gates=gates, **settings)
    return Context(
        service="test",
        settings=given,
        gates=given.gates(),
        api=cast("Api", api),
        bus=cast("Bus", FakeBus()),
        clock=FakeClock(),
        entropy=NoChance(),
        health=Health(),
        replica="r1",
    )


class Live:
    """The context of one component."""

    def __init__(self, *, gates: str = "", **settings: Any) -> None:
        self.api = FakeApi(version=100)
        self.context = context(self.api, gates=gates, **settings)
        self.bus = cast("FakeBus", self.context.bus)
        self.mirror = Mirror(api=self.context.api, bus=self.context.bus, clock=self.context.clock)
        self.shards = Shards(
            api=self.context.api, clock=self.context.clock, service="test", namespace="s", identity="r1"
        )
        self.add_task: list[Any] = []
        self.running: list[asyncio.Future[None]] = []
        self.woken = Woken()
        self.live_context = self.another()

    def start(self) -> None:
        """Run the tasks of the components until the test ends."""
        self.running = [asyncio.ensure_future(task()) for task in self.add_task]

    def another(self) -> LiveContext:
        """Return the context of another component of the same service."""
        return LiveContext(
            self.context,
            self.mirror,
            self.shards,
            add_task=self.add_task.append,
            recorder=cast("Any", lambda component: f"recorder of {component}"),
            executor=cast("Any", lambda recorder: f"executor with {recorder}"),
        )
