"""Nodes that come, go, are relabelled, tainted and cordoned while a DaemonSet is updated.

A record checks every moment of the DaemonSet's pods.

    async with churning(cluster, namespace, 50) as churn:
        …
        await churn.changes(100)
        await churn.settled(image)
        assert not churn.record.crowded
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.resources import NODE, POD
from flotilla_common.clock import SystemClock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.settings import Settings
from flotilla_common.workload.placement import node_of
from flotilla_dev.cluster import kwok
from tests.support.cluster import Cluster
from tests.testkit.documents import Json

POOL = "pool"
"""Label of nodes: a DaemonSet of the namespace has the namespace's name as nodeSelector."""
TAINT: Json = {"key": "example.com/broken", "effect": "NoExecute"}
SIDE_BY_SIDE = 32  # requests
PAUSE = 0.01  # seconds between two changes
LOOKS = 0.1  # seconds between two looks at all pods: they should not be what takes the time


class Record:
    """The pods of a namespace as one watch shows them, in every version."""

    def __init__(self) -> None:
        self.crowded: list[str] = []
        """Moments with two pods of one revision on a node, neither of them going nor finished."""
        self.changed = asyncio.Event()
        self._pods: dict[str, Pod] = {}
        self._places: Counter[tuple[str, str]] = Counter()

    async def follow(self, api: KubeClient, namespace: str) -> None:
        """Watch for as long as the test runs; list again when a watch breaks off."""
        while True:
            page = await api.list(POD, namespace)
            listed = [msgspec.json.decode(item, type=Pod) for item in page.items]
            for uid in self._pods.keys() - {pod.metadata.uid for pod in listed}:
                self._drop(uid)
            for pod in listed:
                self._take(pod)
            try:
                async for event in api.watch(POD, page.resource_version, namespace=namespace):
                    if event.type != "BOOKMARK":
                        self._event(event.type, msgspec.json.decode(event.object, type=Pod))
            except (ApiError, Unreachable) as error:
                print(f"the recording watch broke off: {error!r}")

    def pods(self) -> list[Pod]:
        """Return all existing pods."""
        return list(self._pods.values())

    def _event(self, kind: str, pod: Pod) -> None:
        if kind == "DELETED":
            self._drop(pod.metadata.uid)
        else:
            self._take(pod)
        self.changed.set()

    def _take(self, pod: Pod) -> None:
        self._drop(pod.metadata.uid)
        self._pods[pod.metadata.uid] = pod
        if pod.active:
            place = (node_of(pod), pod.revision)
            self._places[place] += 1
            if self._places[place] > 1:
                self.crowded.append(f"{self._places[place]} pods of {place[1]} on {place[0]}: {pod.metadata.name}")

    def _drop(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is not None and known.active:
            self._places[node_of(known), known.revision] -= 1


class Churn:
    """The nodes of a pool, and changes of them."""

    def __init__(self, api: KubeClient, pool: str, indexes: range, record: Record) -> None:
        self.record = record
        self._api = api
        self._pool = pool
        self._begun = indexes
        self._new = count(indexes.stop)
        self._nodes: list[str] = []
        self._away: set[str] = set()
        self._clock = SystemClock()
        self._dice = random.Random(18)
        self._requests = asyncio.Semaphore(SIDE_BY_SIDE)

    async def begin(self) -> None:
        """Make the nodes. Pods may go there when the fake kubelets have taken them."""
        await asyncio.gather(*map(self._come, self._begun))

    async def changes(self, number: int) -> None:
        """Make this many changes of nodes, one soon after the other."""
        kinds = (self._go, self._relabel, self._taint, self._cordon, self._return, self._return)
        for _ in range(number):
            await self._dice.choice(kinds)(self._dice.choice(self._nodes))
            await self._clock.sleep(PAUSE)

    async def until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait until the condition holds, looking again after changes of pods."""
        async with asyncio.timeout(seconds):
            while not condition():
                self.record.changed.clear()
                await self.record.changed.wait()
                await self._clock.sleep(LOOKS)

    async def settled(self, image: str, seconds: float) -> None:
        """Wait until each node that fits has one pod, ready with this image, and every other node has none.

        Pods of deleted nodes are left to Kubernetes' garbage collector, which takes a minute.
        """
        fitting, there = await self.fitting(), set(self._nodes)
        try:
            await self.until(lambda: not self.wrong(image, fitting, there), seconds)
        except TimeoutError:
            raise AssertionError("\n".join(self.wrong(image, fitting, there)[:20])) from None

    async def collected(self, seconds: float) -> None:
        """Wait until no pod is left on a node that is gone."""
        await self.until(lambda: not {node_of(pod) for pod in self.record.pods()} & self._away, seconds)

    def wrong(self, image: str, fitting: set[str], there: set[str]) -> list[str]:
        """Return the deviations from the wanted state, by node."""
        pods: dict[str, list[Pod]] = {name: [] for name in there}
        for pod in self.record.pods():
            if node_of(pod) in pods:
                pods[node_of(pod)].append(pod)
        told = [f"{name}: {len(found)} pods" for name, found in pods.items() if len(found) != (name in fitting)]
        return told + [
            f"{name}: {_seen(pod)}" for name, found in pods.items() for pod in found if not _runs(pod, image)
        ]

    async def fitting(self) -> set[str]:
        """Return the nodes of the pool that want a pod, or will when they are ready."""
        listed = await self._api.list(NODE)
        nodes = [msgspec.json.decode(item, type=Node) for item in listed.items]
        return {node.metadata.name for node in nodes if self._fits(node)}

    def _fits(self, node: Node) -> bool:
        broken = any(taint.key == TAINT["key"] for taint in node.spec.taints)
        return node.metadata.labels.get(POOL) == self._pool and not broken

    async def _come(self, index: int) -> None:
        node = kwok.node(index)
        node["metadata"]["labels"][POOL] = self._pool
        async with self._requests:
            await self._api.create(NODE, "", msgspec.json.encode(node))
        self._nodes.append(f"node-{index}")

    async def _return(self, name: str) -> None:
        """Undo all changes of the node, or add another node in place of a deleted one.

        The new node has a name of its own: kwok does not always start pods on a node that existed before.
        """
        if len(self._nodes) < len(self._begun):
            await self._come(next(self._new))
        else:
            await self._patch(name, {"metadata": {"labels": {POOL: self._pool}}, "spec": {"taints": None}})

    async def _go(self, name: str) -> None:
        self._nodes.remove(name)
        self._away.add(name)
        await self._api.delete(NODE, "", name)

    async def _relabel(self, name: str) -> None:
        await self._patch(name, {"metadata": {"labels": {POOL: self._dice.choice(("other", self._pool))}}})

    async def _taint(self, name: str) -> None:
        await self._patch(name, {"spec": {"taints": self._dice.choice(([TAINT], None))}})

    async def _cordon(self, name: str) -> None:
        await self._patch(name, {"spec": {"unschedulable": self._dice.choice((True, False))}})

    async def _patch(self, name: str, change: Json) -> None:
        await self._api.patch(NODE, "", name, msgspec.json.encode(change), PatchType.MERGE)


def _runs(pod: Pod, image: str) -> bool:
    return pod.active and pod.ready and {one.image for one in pod.status.container_statuses} == {image}


def _seen(pod: Pod) -> str:
    images = [one.image for one in pod.status.container_statuses]
    return f"{pod.metadata.name} {pod.revision} {images} active={pod.active} ready={pod.ready}"


@asynccontextmanager
async def churning(cluster: Cluster, namespace: str, indexes: range) -> AsyncGenerator[Churn]:
    """Create nodes `node-<index>` in the pool of the namespace, and record its pods, for the time of the block."""
    settings = Settings(kubeconfig=str(cluster.kubeconfig))
    api = KubeClient(await load_config(settings, reader=read_here), user_agent="churn")
    record = Record()
    watching = asyncio.create_task(record.follow(api, namespace))
    churn = Churn(api, namespace, indexes, record)
    try:
        await churn.begin()
        yield churn
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await api.close()
