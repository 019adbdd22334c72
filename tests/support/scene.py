"""A namespace with CloneSets on a running cluster, and an observer that checks everything that happens in it."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from flotilla_dev.cluster.kwok import Kubelet
from tests.support.cluster import Cluster
from tests.support.observer import Observer, Promise, observe, uids
from tests.support.rest import JSON_PATCH

OLD, NEW = "nginx:1", "nginx:2"
_numbers = count()


class Installation(Protocol):
    """Services that run for a cluster: as processes (`fleet`), or in it (`release`)."""

    @property
    def cluster(self) -> Cluster: ...

    async def healthy(self) -> None:
        """Check that every service is ready, and none has logged a programming error."""


Running = TypeVar("Running", bound=Installation)


def cloneset(name: str, replicas: int, image: str = OLD, **rolling: object) -> dict[str, Any]:
    """Return a CloneSet that is updated in place where possible; `rolling`: members of its rollingUpdate."""
    labels = {"app": name}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": image}]},
            },
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", **rolling},
            },
        },
    }


class Scene(Generic[Running]):
    """A namespace with its observer."""

    def __init__(self, flotilla: Running, seen: Observer) -> None:
        self.flotilla = flotilla
        self.cluster = flotilla.cluster
        self.seen = seen
        self.namespace = seen.namespace
        self._stored = self.cluster.api_objects.within(seen.namespace)

    async def kubectl(self, *arguments: str, stdin: str = "", check: bool = True, timeout: float = 60) -> str:
        """Run kubectl in the namespace without holding up the observer."""
        words = ("-n", self.namespace, *arguments)
        return await asyncio.to_thread(self.cluster.kubectl, *words, stdin=stdin, check=check, timeout=timeout)

    async def read(self, *arguments: str) -> dict[str, Any]:
        """Return what `kubectl get … -o json` prints."""
        return await asyncio.to_thread(self.cluster.read, "-n", self.namespace, *arguments)

    async def create(self, *documents: dict[str, Any]) -> None:
        """Create objects."""
        for document in documents:
            await asyncio.to_thread(self._stored.create, document)

    async def patch(self, name: str, spec: dict[str, Any]) -> None:
        """Merge into a CloneSet's spec."""
        await asyncio.to_thread(self._stored.patch, "clone", name, {"spec": spec})

    async def roll(self, name: str, image: str, kind: str = "clone", spec: str = "/spec/template/spec") -> None:
        """Change the image; `spec` is the path of what has the containers."""
        patch = [{"op": "replace", "path": f"{spec}/containers/0/image", "value": image}]
        await asyncio.to_thread(self._stored.patch, kind, name, patch, kind=JSON_PATCH)

    async def settle(self, name: str, image: str, replicas: int, seconds: float = 120) -> None:
        """Wait until all pods run the image and the status agrees."""
        await self.seen.until(
            lambda: self.seen.settled(name, image, replicas), seconds, f"{replicas} pods of {name} with {image}"
        )

    async def part_way(self, name: str, image: str, pods: int) -> None:
        """Wait until this many pods run the image."""
        await self.seen.until(lambda: self.seen.ready(name, image) >= pods, 60, f"{pods} pods of {name} with {image}")

    async def end(self) -> None:
        """Check that nothing was ever broken, and every service is healthy."""
        assert self.seen.broken() == []
        await self.flotilla.healthy()


def unhurried(at_once: int) -> Kubelet:
    """Return fake kubelets for rollouts that last as long as a disturbance, with `at_once` pods under way at a time.

    Their restarts take a second or several, as real ones do: thirteen pods a second are updated, and the rollouts leave
    the cores to the disturbance. With fast ones it would be as many pods as the machine can update.
    """
    return Kubelet(restart=at_once * 50)


class Rollout:
    """A large CloneSet in the middle of an in-place rollout that faults may hit."""

    def __init__(self, scene: Scene[Any], name: str, replicas: int, most: int) -> None:
        self.place = scene
        self._name = name
        self._replicas = replicas
        self.most = most
        self._images = count(2)
        self.image = OLD
        self._before: dict[str, tuple[str, str, str]] = {}

    async def part_way(self, part: float) -> None:
        """Wait until this part of the pods is updated."""
        await self.place.part_way(self._name, self.image, int(self._replicas * part))

    async def begin(self, part: float = 0.3) -> None:
        """Change the image, and return when this part of the pods is updated."""
        seen = self.place.seen
        self._before = uids(seen.of(self._name))
        self.image = f"nginx:{next(self._images)}"
        seen.promise(Promise(cloneset=self._name, replicas=self._replicas, max_unavailable=self.most))
        await self.place.roll(self._name, self.image)
        await self.part_way(part)

    @property
    def done(self) -> int:
        """Return how many pods run the new image and are Ready."""
        return self.place.seen.ready(self._name, self.image)

    @property
    def finished(self) -> bool:
        """Report whether all pods run the new image, and the status agrees."""
        return self.place.seen.settled(self._name, self.image, self._replicas)

    async def finish(self, seconds: float = 120) -> None:
        """Wait for the right end: the same pods, nodes and IPs, and no violation in the history."""
        await self.place.settle(self._name, self.image, self._replicas, seconds)
        assert uids(self.place.seen.of(self._name)) == self._before
        broken = self.place.seen.broken()
        assert not broken, broken

    async def end(self, seconds: float = 120) -> None:
        """Finish, and check that every service is healthy."""
        await self.finish(seconds)
        await self.place.flotilla.healthy()

    async def throughout(self, disturbance: Coroutine[Any, Any, None]) -> int:
        """Roll from image to image for as long as the disturbance lasts; returns how often. Each of them ends right."""
        disturbed, times = asyncio.create_task(disturbance), 0
        try:
            while not times or not disturbed.done():
                await self.begin()
                await self.finish()
                times += 1
        finally:
            disturbed.cancel()
        await disturbed
        return times


@asynccontextmanager
async def scene(flotilla: Running) -> AsyncGenerator[Scene[Running]]:
    """Observe a namespace of its own for the time of the block."""
    namespace = f"scene-{next(_numbers)}"
    await asyncio.to_thread(flotilla.cluster.kubectl, "create", "namespace", namespace)
    async with observe(flotilla.cluster, namespace) as seen:
        yield Scene(flotilla, seen)
    await asyncio.to_thread(
        flotilla.cluster.kubectl, "delete", "namespace", namespace, "--wait=false", "--ignore-not-found"
    )


@asynccontextmanager
async def rollout(
    flotilla: Installation, replicas: int, most: int, nodes: Mapping[str, str] | None = None
) -> AsyncGenerator[Rollout]:
    """Create a CloneSet and wait until all its pods are ready, on nodes with these labels."""
    async with scene(flotilla) as place:
        wanted = cloneset("web", replicas, maxUnavailable=most)
        wanted["spec"]["template"]["spec"]["nodeSelector"] = dict(nodes or {})
        await place.create(wanted)
        await place.settle("web", OLD, replicas)
        yield Rollout(place, "web", replicas, most)
