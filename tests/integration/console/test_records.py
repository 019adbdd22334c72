"""The story and the state of the bus, read from a real nats-server."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock
from flotilla_console.story.bus_look import BusWatcher
from flotilla_console.story.records import Limits, read
from flotilla_console.story.traffic import TrafficReader
from flotilla_insight.published import Act
from tests.support.broker import broker
from tests.testkit.apiserver import FakeApi
from tests.unit.console.story.records_of_rollouts import change, decision, in_place

ROLLOUT = [act for pod in range(100) for act in in_place(pod, f"web-{pod}")]


@pytest_asyncio.fixture
async def bus(tmp_path: Path) -> AsyncIterator[NatsBus]:
    async with broker(tmp_path) as running:
        client = running.bus()
        for spec in subjects.RECORDS:
            await client.ensure_stream(spec)
        await client.publish("act.v1.webhook.clonesets.shop.web", msgspec.json.encode(change(0)))
        await client.publish("why.v1.clonesets.shop.web", msgspec.json.encode(decision(1, replicas=3)))
        for one in ROLLOUT:
            await client.publish(f"act.v1.cloneset.pods.shop.{one.name}", msgspec.json.encode(one))
        yield client
        await client.close()


def names(acts: tuple[Act, ...]) -> list[str]:
    return [act.name for act in acts]


async def test_the_records_of_a_rollout_are_read_within_limits(bus: NatsBus) -> None:
    whole = await read(bus, CLONE_SET, "shop", "web")
    assert names(whole.acts) == ["web", *names(tuple(ROLLOUT))]
    assert [why.numbers for why in whole.decisions] == [{"replicas": 3}]
    assert (whole.cut, whole.error) == (0, "")
    newest = await read(bus, CLONE_SET, "shop", "web", Limits(records=10))
    assert names(newest.acts) == names(tuple(ROLLOUT[-10:]))
    assert newest.cut == len(ROLLOUT) + 1 - 10
    assert (await read(bus, CLONE_SET, "shop", "other")).acts == ()


async def test_the_traffic_of_an_object_is_read_from_all_streams(bus: NatsBus) -> None:
    await bus.ensure_stream(subjects.kube_stream(CLONE_SET))
    headers = {subjects.OP: subjects.ADDED, subjects.RV: "7"}
    body = b'{"metadata":{"name":"web","namespace":"shop"}}'
    await bus.publish(subjects.kube(CLONE_SET, "shop", "web"), body, headers)
    traffic = await TrafficReader(bus, SystemClock()).read(CLONE_SET, "shop", "web")
    assert traffic.error == ""
    assert sorted(line.stream for line in traffic.lines) == ["act", "kube", "why"]
    pod = await TrafficReader(bus, SystemClock()).read(POD, "shop", "web-3")
    assert [line.name for line in pod.lines] == ["web-3"] * len(list(in_place(3, "web-3")))
    assert (await TrafficReader(bus, SystemClock()).read(POD, "shop", "web")).lines == ()


async def test_a_look_has_the_streams_with_their_rates(bus: NatsBus) -> None:
    look = await BusWatcher(bus, FakeApi().api, SystemClock(), "flotilla-system").look()
    assert look.bus_error == ""
    assert look.snapshot is not None
    assert {"act", "why", "decisions"} <= {stream.name for stream in look.snapshot.streams}
