"""A faulty network between our processes and the apiserver or NATS, in the middle of rollouts.

What the bus cannot do is done without it.
"""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from tests.support.certificates import Authority
from tests.support.cluster import control_plane, eventually
from tests.support.fault_proxy import ApiProxy, Request, Wire, api_proxy, wire
from tests.support.faults import answer, broken_off, dripping, late, reset_after, reset_before, swallowed
from tests.support.fleet import Fleet, fleet
from tests.support.scene import Rollout, cloneset, rollout, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PODS, MOST = 40, 8
LARGE = 1_400_000
FLAGS = ["--lease-duration=6", "--lease-retry-period=1", "--bus-fallback-after=6"]


class Proxied(NamedTuple):
    """A fleet that reaches its apiserver and its bus through proxies; kubectl and the observer do not."""

    fleet: Fleet
    proxy: ApiProxy
    bus: Wire
    authority: Authority
    tls: ssl.SSLContext

    @property
    def returns(self) -> int:
        """Return how often a mirror has gone back from the apiserver to the bus."""
        return self.fleet.members["cloneset"].log().count("reading from it again")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxied]:
    folder = tmp_path_factory.mktemp("proxy")
    authority = Authority(folder)
    tls = authority.server_context()
    async with (
        control_plane(tmp_path_factory.mktemp("plane")) as cluster,
        api_proxy(cluster, folder, authority, tls) as proxy,
    ):
        nats = urlsplit((await cluster.nats()).url)
        async with wire(str(nats.hostname), nats.port or 0) as bus:
            flags = [*FLAGS, f"--kubeconfig={proxy.kubeconfig}", f"--nats=nats://127.0.0.1:{bus.port}"]
            async with fleet(cluster, flags=flags) as running:
                yield Proxied(running, proxy, bus, authority, tls)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web(there: Proxied) -> AsyncIterator[Rollout]:
    async with rollout(there.fleet, PODS, MOST) as running:
        yield running


def is_write(request: Request) -> bool:
    """Report whether this is a write for a workload, not for leases, events or the webhook's questions."""
    aside = any(part in request.path for part in ("/leases", "/events"))
    return request.write and not request.dry_run and not aside


def is_watch(request: Request) -> bool:
    return request.watch


def watches_pods(request: Request) -> bool:
    return request.watch and request.path.endswith("/pods")


def anything(request: Request) -> bool:
    return not request.watch


async def test_late_answers(there: Proxied, web: Rollout) -> None:
    with there.proxy.spoiling(anything, late(0.1)) as spoilt:
        await web.begin()
        await spoilt.happened(30)
        await web.finish()
    await web.end()


@pytest.mark.parametrize("fault", [reset_before(), reset_after()], ids=["before it arrives", "its reply is lost"])
async def test_writes_are_reset(there: Proxied, web: Rollout, fault: object) -> None:
    with there.proxy.spoiling(is_write, fault, times=8) as spoilt:
        await web.begin(part=0)
        await spoilt.happened(8)
        await web.end()


async def test_every_connection_to_the_apiserver_is_reset_again_and_again(there: Proxied, web: Rollout) -> None:
    await web.begin(part=0.05)
    for part in (0.2, 0.4, 0.6):
        there.proxy.wire.reset()
        await web.part_way(part)
    await web.end()


async def test_watches_break_off_within_a_line(there: Proxied, web: Rollout) -> None:
    with there.proxy.spoiling(watches_pods, broken_off(40_000), times=4) as spoilt:
        there.proxy.wire.reset()  # or the running watch would continue undamaged
        await web.begin(part=0)
        await spoilt.happened(4)
        await web.end()


async def test_a_watch_that_drips(there: Proxied, web: Rollout) -> None:
    """A slow loris: the watch lives, and is later with every event."""
    with there.proxy.spoiling(is_watch, dripping(size=8192, pause=0.05)) as spoilt:
        there.proxy.wire.reset()
        await web.begin(part=0)
        await spoilt.happened(20)
        await web.part_way(0.5)
    there.proxy.wire.reset()
    await web.end()


async def test_too_many_requests(there: Proxied, web: Rollout) -> None:
    """The apiserver sets when to come back. Only a change of the object or its pods causes an earlier pass."""
    clock = SystemClock()
    with there.proxy.spoiling(is_write, answer(429, {"Retry-After": "1"}), times=6) as spoilt:
        started = clock.monotonic()
        await web.begin(part=0)
        await spoilt.happened(6)
        assert clock.monotonic() - started > 1, spoilt.requests  # each pass tries one write of a kind, and the status
        await web.end()
    assert 'code="429"' in there.fleet.members["cloneset"].metrics_text()


async def test_requests_vanish(there: Proxied, web: Rollout) -> None:
    """Established connections go dead: requests leave and no answer ever comes, until the network forgets them."""
    await web.begin(part=0.1)
    with there.proxy.spoiling(anything, swallowed()) as spoilt:
        await spoilt.happened(3)
        await eventually(lambda: not there.fleet.members["cloneset"].metric("kruise_manager_is_leader"))
    await web.end()


async def test_half_open_connections_to_the_apiserver(there: Proxied, web: Rollout) -> None:
    """New connections are accepted and never answered, existing ones receive nothing."""
    await web.begin(part=0.1)
    wire = there.proxy.wire
    with wire.mute():
        before = wire.accepted
        await eventually(lambda: not there.fleet.members["cloneset"].metric("kruise_manager_is_leader"))
        wire.reset()
        await eventually(lambda: wire.accepted > before + 3)
    await web.end()


async def test_certificate_changes(there: Proxied, web: Rollout, tmp_path: Path) -> None:
    """A foreign certificate is refused however long it is shown; another one of the trusted authority is accepted."""
    await web.begin(part=0.1)
    stranger, service = Authority(tmp_path, "stranger"), there.fleet.members["cloneset"]
    stranger.renew(there.tls)
    there.proxy.wire.reset()
    await eventually(lambda: "CERTIFICATE_VERIFY_FAILED" in service.log() or "certificate" in service.why_not_ready())
    standing = web.done
    await eventually(lambda: not service.metric("kruise_manager_is_leader"))
    assert web.done - standing <= MOST
    there.authority.renew(there.tls)
    there.proxy.wire.reset()
    await web.end()


async def test_late_and_slow_messages(there: Proxied, web: Rollout) -> None:
    there.bus.delay = 0.1
    await web.begin()
    there.bus.delay, there.bus.rate = 0, 100_000
    await web.part_way(0.7)
    there.bus.rate = 0
    await web.end()


async def test_every_connection_to_the_bus_is_reset_again_and_again(there: Proxied, web: Rollout) -> None:
    await web.begin(part=0.05)
    for part in (0.2, 0.4, 0.6):
        there.bus.reset()
        await web.part_way(part)
    await web.end()


async def test_connections_to_the_bus_break_off_within_a_message(there: Proxied, web: Rollout) -> None:
    await web.begin(part=0.05)
    for number in range(1, 6):
        cuts, there.bus.cut_after = there.bus.cuts, 3001 * number
        await eventually(lambda cuts=cuts: there.bus.cuts > cuts)
    await web.end()


async def test_half_open_connections_to_the_bus(there: Proxied, web: Rollout) -> None:
    """Nothing passes, nothing ends: the services work without the bus, and return to it."""
    before = there.returns
    await web.begin(part=0.1)
    with there.bus.mute():
        await web.finish()
        assert "watching the apiserver directly" in there.fleet.members["cloneset"].log()
    await eventually(lambda: there.returns > before)
    await web.begin()
    await web.end()


async def test_objects_as_large_as_they_may_be(there: Proxied) -> None:
    """They are transferred completely, over a wire to the bus that breaks in the middle of them."""
    async with scene(there.fleet) as place:
        large = cloneset("large", 2, maxUnavailable=1)
        large["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * LARGE}]
        cuts, there.bus.cut_after = there.bus.cuts, LARGE // 2
        with there.proxy.spoiling(anything, late(0.02)):
            await place.create(large)
            await place.settle("large", "nginx:1", 2)
            await place.roll("large", "nginx:2")
            await place.settle("large", "nginx:2", 2)
        await eventually(lambda: there.bus.cuts > cuts)
        await place.end()
