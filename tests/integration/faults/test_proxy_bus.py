"""A faulty network between our processes and NATS, in mid-rollout. What the bus cannot do is done without it."""

from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from tests.support.cluster import control_plane, eventually
from tests.support.fault_proxy import Wire, wire
from tests.support.fleet import Fleet, fleet
from tests.support.scene import Rollout, cloneset, rollout, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PODS, MOST = 60, 12
LARGE = 1_400_000


class Wired(NamedTuple):
    """A fleet that reaches its bus through a wire."""

    fleet: Fleet
    wire: Wire


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Wired]:
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster:
        nats = urlsplit((await cluster.nats()).url)
        async with wire(str(nats.hostname), nats.port or 0) as made:
            flags = [*FLAGS, f"--nats=nats://127.0.0.1:{made.port}"]
            async with fleet(cluster, flags=flags) as running:
                yield Wired(running, made)


FLAGS = ["--lease-duration=6", "--lease-retry-period=0.5", "--bus-fallback-after=6"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(there: Wired) -> AsyncIterator[Rollout]:
    async with rollout(there.fleet, PODS, MOST) as running:
        yield running


def returns(there: Wired) -> int:
    """Return how often a mirror has gone back from the apiserver to the bus."""
    return there.fleet.members["cloneset"].log().count("reading from it again")


async def test_late_messages(there: Wired, web: Rollout) -> None:
    there.wire.delay = 0.1
    await web.begin()
    await web.finish()
    there.wire.delay = 0
    await web.end()


async def test_slow_messages(there: Wired, web: Rollout) -> None:
    there.wire.rate = 100_000
    await web.begin(part=0)
    await web.part_way(0.5)
    there.wire.rate = 0
    await web.end()


async def test_every_connection_is_reset_again_and_again(there: Wired, web: Rollout) -> None:
    await web.begin(part=0.05)
    for part in (0.2, 0.4, 0.6):
        there.wire.reset()
        await web.part_way(part)
    await web.end()


async def test_connections_break_off_within_a_message(there: Wired, web: Rollout) -> None:
    await web.begin(part=0.05)
    for number in range(1, 6):
        cuts, there.wire.cut_after = there.wire.cuts, 3001 * number
        await eventually(lambda cuts=cuts: there.wire.cuts > cuts)
    await web.end()


async def test_half_open_connections(there: Wired, web: Rollout) -> None:
    """Nothing passes, nothing ends: the services work without the bus, and return to it."""
    before = returns(there)
    await web.begin(part=0.1)
    with there.wire.mute():
        await web.finish()
        assert "watching the apiserver directly" in there.fleet.members["cloneset"].log()
    await eventually(lambda: returns(there) > before)
    await web.begin()
    await web.end()


async def test_objects_as_large_as_they_may_be(there: Wired) -> None:
    """They are transferred completely, over a wire that breaks in the middle of them."""
    async with scene(there.fleet) as place:
        large = cloneset("large", 2, maxUnavailable=1)
        large["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * LARGE}]
        cuts, there.wire.cut_after = there.wire.cuts, LARGE // 2
        await place.create(large)
        await place.settle("large", "nginx:1", 2)
        await place.roll("large", "nginx:2")
        await place.settle("large", "nginx:2", 2)
        await eventually(lambda: there.wire.cuts > cuts)
        await place.end()
