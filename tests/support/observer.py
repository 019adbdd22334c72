"""An ideal observer: it sees every version of every pod and CloneSet of a namespace, and checks the whole history.

A watch shows each change in order, so a violation of a millisecond in the middle of a rollout is found, even if the end
is right.

    async with observe(cluster, "web") as seen:
        …
        seen.promise(Promise("web", replicas=200, max_unavailable=20))
        … a rollout with any faults in it …
        assert seen.broken() == []
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import SystemClock
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.kube.reflector import decode_head
from flotilla_common.settings import Settings
from tests.support.cluster import Cluster

DELETED = "DELETED"
MOST_TOLD = 10
"""Maximum number of reported violations of one rollout: the first ones show the cause."""


class Change(msgspec.Struct, frozen=True):
    """One version of one pod, or its end.

    `listed`: it was found by a LIST after the watch had to restart (a restarted apiserver has no old versions). Steps
    may be missing before it, and only the last of a LIST is a state that existed.
    """

    pod: Pod
    gone: bool = False
    listed: bool = False


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one CloneSet while the promise holds.

    `lost`: pods that the test itself deletes or makes unready. `updated`: at most this many active pods run `image`.
    `in_place`: a rollout neither creates nor deletes pods.
    """

    cloneset: str
    replicas: int
    max_unavailable: int
    max_surge: int = 0
    lost: int = 0
    image: str = ""
    updated: int = 0
    in_place: bool = True


class Observer:
    """The pods and CloneSets of a namespace, now and from the beginning."""

    def __init__(self, api: KubeClient, namespace: str) -> None:
        self.namespace = namespace
        self.pods: dict[str, Pod] = {}
        self.clonesets: dict[str, CloneSet] = {}
        self.history: list[Change] = []
        self.statuses: Counter[str] = Counter()
        """Versions by CloneSet whose status differs from the version before."""
        self._api = api
        self._clock = SystemClock()
        self._changed = asyncio.Event()
        self._promises: list[tuple[Promise, int]] = []
        self._listing = False
        self._watching: asyncio.Task[None] | None = None

    def of(self, cloneset: str) -> list[Pod]:
        """Return the active pods of the CloneSet."""
        return [pod for pod in self.pods.values() if pod.active and _owner(pod) == cloneset]

    def ready(self, cloneset: str, image: str) -> int:
        """Return how many pods of the CloneSet are Ready and run this image."""
        return sum(
            pod.ready and _image(pod) == image and all(one.image == image for one in pod.status.container_statuses)
            for pod in self.of(cloneset)
        )

    def settled(self, cloneset: str, image: str, replicas: int) -> bool:
        """Report whether all pods run the image, none is surplus, and the status agrees."""
        found = self.clonesets.get(cloneset)
        if found is None or len(self.of(cloneset)) != replicas or self.ready(cloneset, image) != replicas:
            return False
        status = found.status
        counts = {status.replicas, status.ready_replicas, status.updated_ready_replicas, replicas}
        done = status.update_revision == status.current_revision and status.observed_generation
        return len(counts) == 1 and done == found.metadata.generation

    async def until(self, condition: Callable[[], bool], seconds: float = 120, what: str = "") -> None:
        """Wait until the condition holds, looking after every change and a few times a second."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    if self._watching is not None and self._watching.done():
                        self._watching.result()  # it never ends but by an error
                    self._changed.clear()
                    try:
                        async with asyncio.timeout(0.25):
                            await self._changed.wait()
                    except TimeoutError:
                        continue
        except TimeoutError:
            raise AssertionError(f"{what or 'it'} did not come within {seconds:g} s: {self.tell()}") from None

    def tell(self) -> str:
        """Describe the state, for failures."""
        pods = Counter((_owner(pod), _image(pod), pod.active, pod.ready) for pod in self.pods.values())
        states = [
            f"{count} of {owner} with {image} active={active} ready={ready}"
            for (owner, image, active, ready), count in sorted(pods.items())
        ]
        late = [pod for pod in self.pods.values() if not pod.ready][:3]
        states += [
            f"{pod.metadata.name}: {pod.metadata.labels} {pod.metadata.annotations} {pod.status}" for pod in late
        ]
        return "\n".join([*states, *(f"{name}: {one.status}" for name, one in self.clonesets.items())])

    def promise(self, promise: Promise) -> None:
        """Check this promise from now on, until the next one for the same CloneSet."""
        self._promises.append((promise, len(self.history)))

    def broken(self) -> list[str]:
        """Return every broken promise, in the order of the history."""
        found: list[str] = []
        for index, (promise, start) in enumerate(self._promises):
            later = [since for other, since in self._promises[index + 1 :] if other.cloneset == promise.cloneset]
            found += violations(self.history, promise, start, later[0] if later else len(self.history))
        return found

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch for the time of the block."""
        self._watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(POD, Pod, self._pod, lambda: self.pods))
            group.create_task(self._follow(CLONE_SET, CloneSet, self._cloneset, lambda: self.clonesets))

    async def _follow(
        self, resource: Resource, kind: type[Any], take: Callable[[str, Any], None], held: Callable[[], dict[str, Any]]
    ) -> None:
        version = ""
        while True:
            try:
                if not version:
                    page = await self._api.list(resource, self.namespace)
                    found = [msgspec.json.decode(bytes(item), type=kind) for item in page.items]
                    names = {obj.metadata.name for obj in found}
                    self._listing = True
                    for gone in [obj for name, obj in held().items() if name not in names]:
                        take(DELETED, gone)
                    for obj in found:
                        take("MODIFIED", obj)
                    self._listing = False
                    version = page.resource_version
                async for event in self._api.watch(resource, version, namespace=self.namespace):
                    version = decode_head(event.object).metadata.resource_version
                    if event.type != "BOOKMARK":
                        take(event.type, msgspec.json.decode(event.object, type=kind))
                    self._changed.set()
            except ApiError as error:
                version = "" if error.code in (404, 410) else version
                await self._clock.sleep(0.1)
            except Unreachable:
                await self._clock.sleep(0.1)

    def _pod(self, event: str, pod: Pod) -> None:
        held = self.pods.get(pod.metadata.name)
        if event == DELETED:
            self.pods.pop(pod.metadata.name, None)
        elif held is None or held.metadata.resource_version != pod.metadata.resource_version:
            self.pods[pod.metadata.name] = pod
        else:
            return
        self.history.append(Change(pod, gone=event == DELETED, listed=self._listing))

    def _cloneset(self, event: str, cloneset: CloneSet) -> None:
        name = cloneset.metadata.name
        held = self.clonesets.pop(name, None)
        if event != DELETED:
            self.clonesets[name] = cloneset
        if held is not None and held.status != cloneset.status:
            self.statuses[name] += 1


class _Fleet:
    """The pods of one CloneSet at one moment of the history, by uid."""

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self._pods: dict[str, Pod] = {}

    def take(self, change: Change) -> Pod | None:
        """Move on by one change; returns the pod's version before it."""
        uid = change.pod.metadata.uid
        before = self._pods.pop(uid, None)
        if not change.gone:
            self._pods[uid] = change.pod
        return before

    def problems(self) -> Iterator[str]:
        """Yield the violations at this moment."""
        promise = self._promise
        active = [pod for pod in self._pods.values() if pod.active]
        available = sum(map(_serves, active))
        if available < (least := promise.replicas - promise.max_unavailable - promise.lost):
            yield f"{available} pods are available, {least} must be"
        if len(active) > promise.replicas + promise.max_surge:
            yield f"{len(active)} active pods, {promise.replicas + promise.max_surge} may be"
        for instance, count in Counter(pod.metadata.labels.get(keys.INSTANCE_ID_LABEL, "") for pod in active).items():
            if count > 1:
                yield f"{count} pods share the instance id {instance!r}"
        updated = sum(_image(pod) == promise.image for pod in active) if promise.image else 0
        if updated > promise.updated:
            yield f"{updated} pods run {promise.image}, {promise.updated} may"


def violations(history: Sequence[Change], promise: Promise, start: int = 0, end: int | None = None) -> list[str]:
    """Return the violations of the promise in the history from `start` to `end`, at most MOST_TOLD."""
    fleet, told = _Fleet(promise), list[str]()
    for index, change in enumerate(history[:end]):
        if _owner(change.pod) != promise.cloneset:
            continue
        before = fleet.take(change)
        if index < start:
            continue
        problems: list[str] = []
        if not (change.listed and index + 1 < len(history) and history[index + 1].listed):
            problems += fleet.problems()
        if not change.listed:
            problems += _change_problems(promise, before, change)
        told += [f"{promise.cloneset}, change {index} ({change.pod.metadata.name}): {text}" for text in problems]
        if len(told) >= MOST_TOLD:
            break
    return told[:MOST_TOLD]


def _change_problems(promise: Promise, before: Pod | None, change: Change) -> Iterator[str]:
    """Yield the violations in the step of one pod."""
    pod = change.pod
    if not promise.in_place or promise.lost:
        if before is None:
            return
    elif before is None or (before.active and not pod.active) or change.gone:
        yield f"{'made' if before is None else 'removed'} in an in-place rollout"
        return
    if (before.spec.node_name or pod.spec.node_name) != pod.spec.node_name:
        yield f"it moved from {before.spec.node_name} to {pod.spec.node_name}"
    if (before.status.pod_ip or pod.status.pod_ip) != pod.status.pod_ip:
        yield f"its IP changed from {before.status.pod_ip} to {pod.status.pod_ip}"
    if _image(before) != _image(pod):
        gate = before.conditions.get(keys.IN_PLACE_READY)
        if gate is None or gate.status != "False":
            yield f"its image changed to {_image(pod)} while it was not marked unready"


def _owner(pod: Pod) -> str:
    """Return the name of the CloneSet that controls the pod; empty if none does."""
    owner = controller_of(pod.metadata)
    return owner.name if owner is not None and owner.kind == CLONE_SET.kind else ""


def _serves(pod: Pod) -> bool:
    """Report whether the pod is Ready, and its gate open: the kubelet follows the gate a moment later."""
    gate = pod.conditions.get(keys.IN_PLACE_READY)
    return pod.ready and (gate is None or gate.status != "False")


def _image(pod: Pod) -> str:
    return pod.spec.containers[0].image if pod.spec.containers else ""


def uids(pods: Iterable[Pod]) -> dict[str, tuple[str, str, str]]:
    """Return what an in-place update keeps, by name: uid, node, IP."""
    return {pod.metadata.name: (pod.metadata.uid, pod.spec.node_name, pod.status.pod_ip) for pod in pods}


@asynccontextmanager
async def observe(cluster: Cluster, namespace: str) -> AsyncGenerator[Observer]:
    """Observe the namespace for the time of the block."""
    api = KubeClient(
        await load_config(Settings(kubeconfig=str(cluster.kubeconfig)), reader=read_here), user_agent="observer"
    )
    try:
        seen = Observer(api, namespace)
        async with seen.watching():
            yield seen
    finally:
        await api.close()
