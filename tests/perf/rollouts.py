"""Drives rollouts of many pods on fake nodes and takes the figures: seconds, writes, CPU, memory.

What is measured is what users see: a pod counts when the apiserver shows it Ready (with the new image), read from one
watch that both Flotilla's and the native workloads are measured with.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, POD, Resource
from flotilla_common.clock import SystemClock
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.settings import Settings
from flotilla_dev.cluster.kwok import Kubelet
from tests.support.cluster import Cluster, control_plane
from tests.support.fleet import SERVICES, Fleet, cpu_seconds, fleet, memory_mib
from tests.testkit.documents import typed

NAMESPACE = "default"
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
BUILT_IN_DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")
KUBELET = Kubelet(start=1000, restart=1000, events=False)
"""A real kubelet takes a second and more from a pod's binding to its running containers; native workloads and ours are
measured with the same fake one. It writes no events: a real one writes four for a pod in either kind of update, the
fake one only that of a restart, which would count against ours alone."""

LIMIT = float(os.environ.get("PERF_LIMIT", "600"))
"""Seconds that any step may take before the test gives up."""


class Pods:
    """The pods of the namespace as one watch shows them.

    It counts as it goes: with a walk over all pods at every look, the measuring itself would take the more of the two
    cores the more pods there are.
    """

    def __init__(self) -> None:
        self._images: dict[str, str] = {}  # by uid: what the pod is Ready with, if it is
        self._ready: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self.last_event = 0.0

    async def follow(self, api: KubeClient) -> None:
        """Watch for as long as the test runs; list again when a watch breaks off."""
        while True:
            page = await api.list(POD, NAMESPACE)
            self._images.clear()
            self._ready.clear()
            for item in page.items:
                self._take(msgspec.json.decode(item, type=Pod))
            self._changed.set()
            try:
                await self._watch(api, page.resource_version)
            except (ApiError, Unreachable) as error:
                print(f"the measuring watch broke off: {error!r}")

    async def _watch(self, api: KubeClient, version: str) -> None:
        while True:
            async for event in api.watch(POD, version, namespace=NAMESPACE):
                if event.type == "BOOKMARK":  # its object has no containers
                    continue
                pod = msgspec.json.decode(event.object, type=Pod)
                version = pod.metadata.resource_version
                if event.type == "DELETED":
                    self._ready[self._images.pop(pod.metadata.uid, "")] -= 1
                else:
                    self._take(pod)
                    self.last_event = SystemClock().monotonic()
                self._changed.set()

    def _take(self, pod: Pod) -> None:
        images = sorted({status.image for status in pod.status.container_statuses})
        image = ", ".join(images) if pod.ready and pod.active else ""
        self._ready[self._images.get(pod.metadata.uid, "")] -= 1
        self._ready[image] += 1
        self._images[pod.metadata.uid] = image

    def ready(self, image: str) -> int:
        """Return how many pods are Ready and run this image, or these: sorted, with commas."""
        return self._ready[image]

    def __len__(self) -> int:
        return len(self._images)

    async def grown(self, beyond: int) -> float:
        """Wait for one more pod than `beyond`; returns when its event came (monotonic seconds)."""
        async with asyncio.timeout(LIMIT):
            while len(self) <= beyond:
                self._changed.clear()
                await self._changed.wait()
        return self.last_event

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the condition, looking again after changes, at most 50 times a second."""
        clock = SystemClock()
        async with asyncio.timeout(LIMIT):
            while not condition():
                self._changed.clear()
                await self._changed.wait()
                await clock.sleep(0.02)


class Changes:
    """Arrival times of the changes of one CloneSet's spec at a watch, by generation (monotonic seconds)."""

    def __init__(self) -> None:
        self._arrived: dict[int, float] = {}
        self._changed = asyncio.Event()

    async def follow(self, api: KubeClient, version: str) -> None:
        """Watch for as long as something is measured."""
        async for event in api.watch(CLONE_SET, version, namespace=NAMESPACE):
            if event.type != "BOOKMARK":
                generation = msgspec.json.decode(event.object, type=CloneSet).metadata.generation
                self._arrived.setdefault(generation, SystemClock().monotonic())
                self._changed.set()

    async def arrival(self, generation: int) -> float:
        """Return when this generation arrived; wait for it."""
        async with asyncio.timeout(LIMIT):
            while generation not in self._arrived:
                self._changed.clear()
                await self._changed.wait()
        return self._arrived[generation]


class Bench:
    """A control plane with Flotilla, with tools to drive and measure it."""

    def __init__(self, cluster: Cluster, flotilla: Fleet, api: KubeClient, pods: Pods) -> None:
        self.cluster = cluster
        self.flotilla = flotilla
        self.pods = pods
        self.api = api
        self._clock = SystemClock()

    async def create(self, resource: Resource, name: str, replicas: int, image: str) -> None:
        """Create a workload."""
        await self.api.create(resource, NAMESPACE, msgspec.json.encode(manifest(resource, name, replicas, image)))

    async def merge(self, resource: Resource, name: str, spec: dict[str, object]) -> bytes:
        """Change a workload's spec; returns the apiserver's answer."""
        body = msgspec.json.encode({"spec": spec})
        return await self.api.patch(resource, NAMESPACE, name, body, "application/merge-patch+json")

    async def merge_document(self, resource: Resource, namespace: str, name: str, body: dict[str, object]) -> bytes:
        """Change an object; returns the apiserver's answer."""
        patch = msgspec.json.encode(body)
        return await self.api.patch(resource, namespace, name, patch, "application/merge-patch+json")

    async def delete(self, resource: Resource, name: str) -> None:
        """Delete a workload; its pods follow."""
        await self.api.delete(resource, NAMESPACE, name)

    async def until(self, condition: Callable[[], bool]) -> float:
        """Wait; returns the seconds that it took."""
        started = self._clock.monotonic()
        await self.pods.until(condition)
        return self._clock.monotonic() - started

    async def timed(self, change: Awaitable[object], condition: Callable[[], bool]) -> float:
        """Return the seconds from the beginning of a change until the condition holds."""
        started = self._clock.monotonic()
        await change
        await self.pods.until(condition)
        return self._clock.monotonic() - started

    def cpu(self) -> float:
        """Return the CPU seconds of all Flotilla processes and NATS so far."""
        own = sum(member.cpu_seconds() for member in self.flotilla.members.values())
        return own + self.bus_cpu()

    def service_cpu(self) -> Counter[str]:
        """Return the CPU seconds of each service so far."""
        return Counter({name: member.cpu_seconds() for name, member in self.flotilla.members.items()})

    def bus_cpu(self) -> float:
        """Return the CPU seconds of nats-server so far."""
        return cpu_seconds(self.flotilla.nats.process.pid)

    def memory(self) -> dict[str, float]:
        """Return the resident memory of each service, in MiB."""
        return {name: member.rss_mib() for name, member in self.flotilla.members.items()}

    def bus_memory(self, field: str = "VmRSS") -> float:
        """Return the resident memory of nats-server in MiB: the present one, or with `VmHWM` the peak."""
        return memory_mib(self.flotilla.nats.process.pid, field)

    def pod_writes(self) -> float:
        """Return how many writes of pods the services sent with success, by their own count."""
        return sum(writes_in(member.metrics_text()) for member in self.flotilla.members.values())

    async def set_image(self, resource: Resource, name: str, image: str) -> None:
        """Change the image of a workload."""
        containers = [{"name": "nginx", "image": image}]
        await self.merge(resource, name, {"template": {"spec": {"containers": containers}}})

    @asynccontextmanager
    async def changes(self) -> AsyncGenerator[Changes]:
        """Watch CloneSets for the time of the block."""
        page = await self.api.list(CLONE_SET, NAMESPACE)
        changes = Changes()
        watching = asyncio.create_task(changes.follow(self.api, page.resource_version))
        try:
            yield changes
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def reaction(self, changes: Changes, name: str, replicas: int) -> float:
        """Return the seconds from the arrival of a change of replicas at one watch to the new pod at another."""
        before = len(self.pods)
        answer = await self.merge(CLONE_SET, name, {"replicas": replicas})
        generation = msgspec.json.decode(answer, type=CloneSet).metadata.generation
        return await self.pods.grown(before) - await changes.arrival(generation)

    async def quiet(self) -> None:
        """Let status writes and events of the last step end."""
        await self._clock.sleep(0.7)


def writes_in(metrics: str, kind: str = "Pod", outcome: str = "Ok") -> float:
    """Return the writes of objects of a kind with this outcome in a metrics page."""
    lines = [line for line in metrics.splitlines() if line.startswith("flotilla_writes_total{")]
    wanted = f'kind="{kind}"', f'outcome="{outcome}"'
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(one in line for one in wanted))


IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
ALL_AT_ONCE: Mapping[Resource, Mapping[str, object]] = {
    CLONE_SET: {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": IN_PLACE}},
    STATEFUL_SET: {
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": IN_PLACE},
    },
    BUILT_IN_STATEFUL_SET: {"podManagementPolicy": "Parallel", "serviceName": "bench"},
    DEPLOYMENT: {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%", "maxSurge": 0}}},
    DAEMON_SET: {
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"},
        },
    },
    BUILT_IN_DAEMON_SET: {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}},
    },
}
"""Settings by which a workload creates and updates all its pods at once, ours in place."""


def manifest(resource: Resource, name: str, replicas: int, image: str) -> dict[str, object]:
    """Return a workload that creates and updates all its pods at once.

    DaemonSets and BroadcastJobs ignore `replicas`: they have a pod on every node.
    """
    labels = {"app": "bench", "workload": name}
    containers = [{"name": "nginx", "image": image}]
    spec: dict[str, object] = {"containers": containers}
    if resource is STATEFUL_SET:
        spec["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
    if resource is BROADCAST_JOB:
        body = {"template": {"metadata": {"labels": labels}, "spec": spec | {"restartPolicy": "Never"}}}
        return _document(resource, name, body)
    body = {
        **({} if resource in (DAEMON_SET, BUILT_IN_DAEMON_SET) else {"replicas": replicas}),
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
        **ALL_AT_ONCE[resource],
    }
    return _document(resource, name, body)


def _document(resource: Resource, name: str, spec: dict[str, object]) -> dict[str, object]:
    return typed(resource, name, spec=spec)


@asynccontextmanager
async def bench(state_dir: Path, nodes: int = 10, services: Iterable[str] = SERVICES) -> AsyncGenerator[Bench]:
    """Run everything, idle at first, for the time of the block."""
    async with control_plane(state_dir, nodes=nodes, kubelet=KUBELET) as cluster, fleet(cluster, services) as flotilla:
        api = KubeClient(
            await load_config(Settings(kubeconfig=str(cluster.kubeconfig)), reader=read_here), user_agent="bench"
        )
        pods = Pods()
        watching = asyncio.create_task(pods.follow(api))
        try:
            yield Bench(cluster, flotilla, api, pods)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await api.close()


__all__ = [
    "BUILT_IN_DAEMON_SET",
    "BUILT_IN_STATEFUL_SET",
    "CLONE_SET",
    "DAEMON_SET",
    "DEPLOYMENT",
    "STATEFUL_SET",
    "Bench",
    "bench",
]
