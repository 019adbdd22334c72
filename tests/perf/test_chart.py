"""The cost of the chart on a cluster: time until everything is ready, memory, and CPU at rest.

Figures of containers are the kubelet's own (`/metrics/resource`), as shown by `kubectl top`. The thousand pods are on
fake nodes, Flotilla's own on three real ones, and the image is on the nodes before the second installation, whose time
counts: the speed of a registry is no property of the chart.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from flotilla_common.api.resources import POD
from tests.perf.kills import KINDS, Victim
from tests.perf.limits import within
from tests.support.cluster import eventually
from tests.support.helm import NAMESPACE, Release, release
from tests.support.nodes import real_cluster
from tests.support.recorder import Recorder
from tests.support.scene import OLD, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800)]
FAKE_NODES = 20
PODS = 1000
SETTLE_SECONDS, REST_SECONDS = 45, 120
"""Seconds for which a set without work settles, and is then measured.

Kubelets measure each container every ten to twenty seconds.
"""
OURS = {f"{part}__nodeSelector__type": "real" for part in ("manager", "daemon", "nats")}
CPU, MEMORY = "container_cpu_usage_seconds", "container_memory_working_set_bytes"


class Container(NamedTuple):
    """A container of ours: its name, and its pod."""

    name: str
    pod: str


class Usage(NamedTuple):
    """The kubelet's figures of a container: CPU seconds since its start and when that was read, MiB."""

    cpu: float
    at: float
    mib: float


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Release]:
    """Install the chart for the second time."""
    folder: Path = tmp_path_factory.mktemp("plane")
    async with real_cluster(folder) as cluster:
        await cluster.plane.add_nodes(FAKE_NODES)
        async with release(cluster, **OURS) as installed:
            await asyncio.to_thread(installed.helm.run, "uninstall", "flotilla", "--wait")
            await eventually(lambda: not cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found"), 120)
            started = time.monotonic()
            await asyncio.to_thread(installed.helm.install, **OURS)
            within("chart_ready_seconds", time.monotonic() - started)
            yield installed


def usage(flotilla: Release) -> dict[Container, Usage]:
    """Return the figures of all containers of ours from the kubelets."""
    cpu: dict[Container, tuple[float, float]] = {}
    memory: dict[Container, float] = {}
    for node in flotilla.cluster.names:
        page = flotilla.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource")
        for family in text_string_to_metric_families(page):
            for sample in family.samples if family.name in {CPU, MEMORY} else ():
                if sample.labels["namespace"] == NAMESPACE:
                    container = Container(sample.labels["container"], sample.labels["pod"])
                    if family.name == MEMORY:
                        memory[container] = sample.value / 2**20
                    else:
                        cpu[container] = sample.value, float(sample.timestamp or 0)
    live = {pod["metadata"]["name"] for pod in flotilla.pods()}
    return {one: Usage(*cpu[one], memory[one]) for one in cpu.keys() & memory.keys() if one.pod in live}


async def at_rest(flotilla: Release) -> tuple[float, dict[str, float]]:
    """Return the CPU at rest in thousandths of a core, and the maximum MiB of a container by its name.

    `all` is the sum of all containers.
    """
    await asyncio.sleep(SETTLE_SECONDS)
    before = usage(flotilla)
    await asyncio.sleep(REST_SECONDS)
    after = usage(flotilla)
    assert before.keys() == after.keys()
    spent = {one: 1000 * (after[one].cpu - was.cpu) / (after[one].at - was.at) for one, was in before.items()}
    most: dict[str, float] = defaultdict(float)
    for one, now in after.items():
        most[one.name] = max(most[one.name], now.mib)
        print(f"\n{one.pod:40} {spent[one]:6.1f}m {now.mib:7.1f} MiB", end="")
    print()
    return sum(spent.values()), {**most, "all": sum(now.mib for now in after.values())}


async def test_split_with_a_thousand_pods(flotilla: Release) -> None:
    _, idle = await at_rest(flotilla)
    within("chart_service_mib", max(mib for name, mib in idle.items() if name not in {"nats", "all"}))
    within("chart_bus_mib", idle["nats"])
    async with scene(flotilla) as place:
        wanted = cloneset("web", PODS, maxUnavailable="100%")
        wanted["spec"]["template"]["spec"]["nodeSelector"] = {"type": "kwok"}
        await place.create(wanted)
        await place.settle("web", OLD, PODS)
        milli, busy = await at_rest(flotilla)
    within("chart_milli_cpu", milli)
    within("chart_bus_mib", busy["nats"])


@pytest.mark.parametrize("service", KINDS)
async def test_a_killed_container_writes_again(flotilla: Release, service: str) -> None:
    """The container that holds the shard is killed, and restarts.

    It is killed only once: after its second end the kubelet waits for ten seconds, and its replica takes over when the
    lease has expired.
    """
    cluster = flotilla.cluster
    with Recorder(cluster.rest, POD, namespace="default") as seen:
        await eventually(seen.begun)
        victim = Victim(cluster, seen, service, FAKE_NODES, nodes={"type": "kwok"})
        taken = await victim.seconds_from_kill_to_write(lambda: kill_holder(flotilla, service))
        cluster.kubectl("delete", f"{KINDS[service].plural}.{KINDS[service].group}", service)
    within("seconds_from_kill_to_write", taken)


def kill_holder(flotilla: Release, service: str) -> None:
    """kill -9 the container of the pod that holds the only shard of a service."""
    (holder,) = flotilla.held(service).values()
    (pod,) = [one for one in flotilla.pods(service) if holder.startswith(one["metadata"]["name"])]
    identity = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
    flotilla.cluster.run_in(pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "9", identity)


async def test_compact(flotilla: Release) -> None:
    await asyncio.to_thread(flotilla.helm.install, "upgrade", **OURS, profile="compact")
    _, mib = await at_rest(flotilla)
    within("compact_all_mib", mib["all"])
