"""The webhook's cost in the path of pods: five SidecarSets that match, a hundred creates per second.

See docs/performance.md.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import POD
from flotilla_common.clock import SystemClock
from tests.perf.limits import LIMITS, within
from tests.perf.rollouts import NAMESPACE, Bench, bench
from tests.perf.webhooks import CALLS, calls_within
from tests.testkit.documents import typed

SETS = 5
PER_SECOND, SECONDS = 100, 20
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with bench(tmp_path_factory.mktemp("perf"), services=("watcher", "webhook", "sidecar")) as running:
        for number in range(SETS):
            await running.api.create(SIDECAR_SET, "", msgspec.json.encode(sidecar_set(number)))
        yield running


def sidecar_set(number: int) -> dict[str, object]:
    container = {
        "name": f"sidecar-{number}",
        "image": "sidecar:v1",
        "shareVolumePolicy": {"type": "enabled"},
        "transferEnv": [{"sourceContainerName": "main", "envName": "COLOR"}],
        "volumeMounts": [{"name": f"log-{number}", "mountPath": f"/log-{number}"}],
    }
    spec = {
        "selector": {"matchLabels": {"app": "meshed"}},
        "containers": [container],
        "volumes": [{"name": f"log-{number}", "emptyDir": {}}],
        "patchPodMetadata": [],
    }
    return typed(SIDECAR_SET, f"bench-{number}", spec=spec)


def pod(app: str) -> bytes:
    container = {
        "name": "main",
        "image": "nginx:alpine",
        "env": [{"name": "COLOR", "value": "blue"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "labels": {"app": app}}, "spec": spec}
    )


async def creates(site: Bench, app: str) -> list[float]:
    """Return the seconds of each create, as a dry run, at a fixed rate."""
    clock, body = SystemClock(), pod(app)

    async def create(at: float) -> float:
        await clock.sleep(at - clock.monotonic())
        started = clock.monotonic()
        await site.api.create(POD, NAMESPACE, body, dry_run=True)
        return clock.monotonic() - started

    begin = clock.monotonic() + 0.5
    return await asyncio.gather(*(create(begin + index / PER_SECOND) for index in range(PER_SECOND * SECONDS)))


async def test_latency(site: Bench) -> None:
    webhook = site.flotilla.members["webhook"]
    plain = await creates(site, "other")
    assert webhook.metric(CALLS) <= SETS  # the probes: no call for a pod that no rule is about
    meshed = await creates(site, "meshed")
    assert webhook.metric(CALLS) >= PER_SECOND * SECONDS
    for name, found in (("other", plain), ("meshed", meshed)):
        cuts = statistics.quantiles(found, n=100)
        print(f"\ncreate of {name}: p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms")
    slow = LIMITS["webhook_p99_ms"] / 1000
    within("webhook_share_slower", 1 - webhook.metric(calls_within(slow)) / webhook.metric(CALLS))
