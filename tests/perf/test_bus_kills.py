"""Three servers of the chart's bus, one of which is killed every ten seconds while 1,000 pods are created and updated.

The pods are on fake nodes, Flotilla's own on three real ones. A killed server comes back empty, because streams of
objects are in memory. It needs about as long as until the next kill to copy them from the others, so that some streams
lose their messages or have no leader for a while: services then watch the apiserver.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager

import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from tests.perf.limits import within
from tests.support.audit import AuditLog, on, said
from tests.support.cluster import eventually
from tests.support.doctor import doctor_at
from tests.support.helm import Release, release
from tests.support.nodes import real_cluster
from tests.support.observer import Promise, uids
from tests.support.scene import NEW, OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]
FAKE_NODES = 20
PODS = 1000
MOST_UNAVAILABLE = 250
SERVERS = 3
EVERY_SECONDS = 10
WRITES = {"created": 2, "updated": 3}
"""Writes of pods by services, per pod."""
OURS = {f"{part}__nodeSelector__type": "real" for part in ("manager", "daemon", "nats")}


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory, audit: AuditLog) -> AsyncIterator[Release]:
    async with real_cluster(tmp_path_factory.mktemp("plane"), apiserver_flags=audit.flags) as cluster:
        await cluster.plane.add_nodes(FAKE_NODES)
        async with release(cluster, nats__replicas=SERVERS, **OURS) as installed:
            yield installed


def kill(flotilla: Release, server: str) -> None:
    """kill -9 a server, and replace its pod: the kubelet would delay each further start of the container.

    Its volume stays.
    """
    (pod,) = [one for one in flotilla.pods("bus") if one["metadata"]["name"] == server]
    (container,) = pod["status"]["containerStatuses"]
    identity = container["containerID"].partition("://")[2]
    flotilla.cluster.run_in(pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "9", identity)
    flotilla.kubectl("delete", "pod", server, "--force", "--grace-period=0")


def all_run(flotilla: Release) -> bool:
    """Report whether the processes of all servers run; their copies of streams may still be empty."""
    found = [status for pod in flotilla.pods("bus") for status in pod["status"].get("containerStatuses", ())]
    return len(found) == SERVERS and all("running" in status["state"] for status in found)


class Killer:
    """Kills the servers in turn; until one runs again, the others are spared."""

    def __init__(self, flotilla: Release) -> None:
        self._flotilla = flotilla
        self._clock = SystemClock()
        self.kills: list[str] = []

    async def run(self) -> None:
        """Kill until cancelled."""
        while True:
            began = self._clock.monotonic()
            server = f"flotilla-bus-{len(self.kills) % SERVERS}"
            await asyncio.to_thread(kill, self._flotilla, server)
            self.kills.append(server)
            await eventually(lambda: all_run(self._flotilla), 120)
            await self._clock.sleep(max(EVERY_SECONDS - (self._clock.monotonic() - began), 0))


@contextmanager
def counted(audit: AuditLog, what: str) -> Generator[None]:
    """Check the number of writes of pods in the block."""
    audit.ours()
    yield
    writes = on(audit.ours(), "pods")
    refused = Counter(one.response_status.code for one in writes if one.response_status.code >= 300)
    stored = [one for one in writes if one.response_status.code < 300]
    print(f"\n{what}: {said(stored)}, refused: {dict(refused)}")
    assert len(stored) == PODS * WRITES[what], said(stored)


def fallbacks(flotilla: Release) -> int:
    """Return how often a service watched a resource at the apiserver, because its stream had no leader."""
    log = flotilla.kubectl("logs", "-l", "app.kubernetes.io/name=flotilla", "--tail=-1", "--max-log-requests=50")
    return log.count("watching the apiserver directly")


async def test_a_rollout_while_servers_are_killed(flotilla: Release, audit: AuditLog) -> None:
    """It takes no more writes than without kills, and ends with the same pods."""
    clock = SystemClock()
    async with scene(flotilla) as place:
        killer = Killer(flotilla)
        killing = asyncio.create_task(killer.run())
        began = clock.monotonic()
        try:
            await roll(place, audit)
        finally:
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
        took = clock.monotonic() - began
        print(f"\n{len(killer.kills)} kills in {took:.0f} s")
        within("bus_kills_seconds", took)
        assert set(Counter(killer.kills)) == {f"flotilla-bus-{number}" for number in range(SERVERS)}
        assert not place.seen.broken()
    await flotilla.healthy()
    print(f"\n{fallbacks(flotilla)} streams away for half a minute")
    with flotilla.forwarded_bus() as (url, environment):
        deadline = clock.monotonic() + 90
        code, report = await doctor_at(flotilla.cluster.kubeconfig, url, environment)
        while code and clock.monotonic() < deadline:
            code, report = await doctor_at(flotilla.cluster.kubeconfig, url, environment)
    assert not report["findings"], report["findings"]


async def roll(place: Scene[Release], audit: AuditLog) -> None:
    wanted = cloneset("web", PODS, maxUnavailable=MOST_UNAVAILABLE)
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"type": "kwok"}
    with counted(audit, "created"):
        await place.create(wanted)
        await place.settle("web", OLD, PODS, 300)
    before = uids(place.seen.of("web"))
    place.seen.promise(Promise(cloneset="web", replicas=PODS, max_unavailable=MOST_UNAVAILABLE))
    with counted(audit, "updated"):
        await place.roll("web", NEW)
        await place.settle("web", NEW, PODS, 300)
    assert uids(place.seen.of("web")) == before
