"""Steps of users and nodes, as values: they can be printed, stored as JSON, drawn at random and left out.

A step names things as a person would: the CloneSet `web`, its second-oldest pod, the node that runs it. So it means the
same in every run, though pods have other names in each.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REVISION,
    SECRET,
    Resource,
)
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.predicates import is_serving
from tests.simulation.nodes.machine import Machine
from tests.simulation.process import Process
from tests.simulation.scenarios.current_state import CurrentState, image_of

NAMESPACE_NAME = "shop"
PATIENCE = 120.0
"""Fake seconds that a step waits at most: longer than anything takes with any one fault."""

REPOSITORY = "registry.test/shop:"
"""The repository of all images; scenarios name tags only."""

MERGE = "application/merge-patch+json"

QUOTA = Resource("", "v1", "resourcequotas", "ResourceQuota")
_BUILT_IN = {
    one.kind: one for one in (POD, JOB, DEPLOYMENT, CLAIM, REVISION, CONFIG_MAP, SECRET, NODE, NAMESPACE, QUOTA)
}


def resource_of(kind: str) -> Resource:
    """Return the resource of one of Kubernetes' kinds or of ours, as steps name it. Raises LookupError."""
    return _BUILT_IN.get(kind) or catalogue.called(kind).resource


class Stalled(Exception):
    """The timeout of a step that waits."""


class Nodes(Protocol):
    """The part of the cluster that steps may hurt."""

    @property
    def broken_images(self) -> set[str]: ...

    def mend_image(self, image: str) -> None: ...

    def lose_node(self, name: str) -> None: ...

    def return_node(self, name: str) -> None: ...


class World(Protocol):
    """The simulated world, as steps need it."""

    @property
    def api(self) -> Api: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def cluster(self) -> Nodes: ...

    @property
    def machines(self) -> Mapping[str, Machine]: ...

    def agent(self, node: str) -> Process: ...

    def replicas(self, service: str) -> Iterable[Process]: ...

    async def ask_as(self, node: str, subject: str, body: bytes) -> bytes: ...

    async def delete(self, resource: Resource, namespace: str, name: str, propagation: str = "Background") -> None: ...


class Stage(msgspec.Struct, frozen=True):
    """The stage of the steps: the world, and the kind of the workload that they are about."""

    world: World
    current: CurrentState
    kind: str

    def resource(self, kind: str) -> Resource:
        """Return the resource of the kind, or of the workload if none is named."""
        return resource_of(kind or self.kind)

    def pod(self, nth: int, owner: str, node: str = "") -> Pod | None:
        """Return the nth-oldest active pod of a workload, from 0; of those on a node if one is named."""
        pods = [pod for pod in self.current.pods(NAMESPACE_NAME, owner) if node in ("", pod.spec.node_name)]
        return pods[nth] if nth < len(pods) else None


class Step(Frozen, tag=True):
    """Something that happens. Steps that find nothing to act on do nothing: a random script may well contain such."""

    async def play(self, stage: Stage) -> None:
        """Do it; returns when it is done (not when its effects are)."""
        raise NotImplementedError

    def __str__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in fields if value)})"


class Create(Step):
    """`kubectl create`. With `refused`, it must be refused with a message that contains this text."""

    document: Json
    refused: str = ""

    async def play(self, stage: Stage) -> None:
        resource = resource_of(self.document["kind"])
        await _expect(
            stage.world.api.create(resource, _namespace(resource), msgspec.json.encode(self.document)), self.refused
        )


class Change(Step):
    """`kubectl patch --type=merge` of an object, the workload unless `kind` says otherwise."""

    patch: Json
    name: str = "web"
    kind: str = ""
    subresource: str = ""
    refused: str = ""

    async def play(self, stage: Stage) -> None:
        body = msgspec.json.encode(self.patch)
        resource = stage.resource(self.kind)
        call = stage.world.api.patch(
            resource, _namespace(resource), self.name, body, MERGE, subresource=self.subresource
        )
        await _expect(call, self.refused)


class Remove(Step):
    """`kubectl delete`; `propagation` is Background, Foreground or Orphan."""

    name: str = "web"
    kind: str = ""
    propagation: str = "Background"

    async def play(self, stage: Stage) -> None:
        try:
            resource = stage.resource(self.kind)
            await stage.world.delete(resource, _namespace(resource), self.name, self.propagation)
        except ApiError as error:
            if error.code != 404:
                raise


class RemovePod(Step):
    """`kubectl delete pod` of the nth-oldest pod, on a node if it is named."""

    nth: int = 0
    owner: str = "web"
    node: str = ""

    async def play(self, stage: Stage) -> None:
        pod = stage.pod(self.nth, self.owner, self.node)
        if pod is not None:
            await Remove(name=pod.metadata.name, kind="Pod").play(stage)


class EvictPod(Step):
    """`kubectl drain` comes by the nth-oldest pod."""

    nth: int = 0
    owner: str = "web"

    async def play(self, stage: Stage) -> None:
        pod = stage.pod(self.nth, self.owner, "")
        if pod is None:
            return
        name = pod.metadata.name
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        path = POD.path(NAMESPACE_NAME, name, "eviction")
        try:
            await stage.world.api.raw("POST", path, msgspec.json.encode(eviction))
        except ApiError as error:
            if error.code != 404:
                raise


class ChangePod(Step):
    """A merge patch of the nth-oldest pod, on a node if it is named, or of its status."""

    patch: Json
    nth: int = 0
    owner: str = "web"
    node: str = ""
    subresource: str = ""

    async def play(self, stage: Stage) -> None:
        pod = stage.pod(self.nth, self.owner, self.node)
        if pod is not None:
            change = Change(patch=self.patch, name=pod.metadata.name, kind="Pod", subresource=self.subresource)
            await _while_it_exists(change, stage)


class ChangePods(Step):
    """Apply the same merge patch to all pods that are in the lifecycle state now, or to all pods."""

    patch: Json
    state: str = ""
    owner: str = "web"

    async def play(self, stage: Stage) -> None:
        for pod in stage.current.pods(NAMESPACE_NAME, self.owner):
            if self.state in ("", pod.state):
                await _while_it_exists(Change(patch=self.patch, name=pod.metadata.name, kind="Pod"), stage)


class NamePodsToDelete(Step):
    """Put the nth-oldest pods into `podsToDelete`, and change replicas with it if asked to."""

    nths: tuple[int, ...]
    replicas: int | None = None
    owner: str = "web"

    async def play(self, stage: Stage) -> None:
        names = [pod.metadata.name for nth in self.nths if (pod := stage.pod(nth, self.owner)) is not None]
        spec: Json = {"scaleStrategy": {"podsToDelete": names}}
        if self.replicas is not None:
            spec["replicas"] = self.replicas
        await Change(patch={"spec": spec}, name=self.owner).play(stage)


class LoseNode(Step):
    """The node of the nth-oldest pod dies; the one that is named if a pod is there."""

    nth: int = 0
    owner: str = "web"
    node: str = ""

    async def play(self, stage: Stage) -> None:
        pod = stage.pod(self.nth, self.owner, self.node)
        if pod is not None and pod.spec.node_name:
            stage.world.cluster.lose_node(pod.spec.node_name)


class ReturnNodes(Step):
    """All dead nodes come back."""

    nodes: tuple[str, ...] = ("node-1", "node-2", "node-3")

    async def play(self, stage: Stage) -> None:
        for name in self.nodes:
            stage.world.cluster.return_node(name)


class BreakImage(Step):
    """Containers with an image of this tag do not start; with `mend`, they do again."""

    image: str
    mend: bool = False

    async def play(self, stage: Stage) -> None:
        cluster = stage.world.cluster
        (cluster.mend_image if self.mend else cluster.broken_images.add)(REPOSITORY + self.image)


class Downtime(Step):
    """Stop the service for a while; nothing restarts it meanwhile."""

    service: str
    seconds: float

    async def play(self, stage: Stage) -> None:
        clock = stage.world.clock
        until = clock.monotonic() + self.seconds
        while clock.monotonic() < until:
            for process in stage.world.replicas(self.service):
                if process.alive:
                    process.crash()
            await clock.sleep(0.1)
        for process in stage.world.replicas(self.service):
            process.start()


class Sleep(Step):
    """Time passes."""

    seconds: float

    async def play(self, stage: Stage) -> None:
        await stage.world.clock.sleep(self.seconds)


class WaitGone(Step):
    """Wait until an object does not exist any more."""

    name: str = "web"
    kind: str = ""

    async def play(self, stage: Stage) -> None:
        resource = stage.resource(self.kind)
        await until(stage, lambda: stage.current.get(resource, _namespace(resource), self.name) is None, str(self))


class Wait(Step):
    """Wait until the workload's active pods are as described.

    That is: their exact number; the least numbers of those that serve, have the image, are in the lifecycle state, or
    are out of service for an in-place update (`begun`). With `observed`, until the controller has seen the newest spec.
    """

    pods: int | None = None
    serving: int = 0
    image: str = ""
    state: str = ""
    matching: int = 1  # how many pods must have the image and the state
    owner: str = "web"
    begun: int = 0
    observed: bool = False

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            if self.observed and not self._seen(stage):
                return False
            pods = stage.current.pods(NAMESPACE_NAME, self.owner)
            if sum(map(_is_begun, pods)) < self.begun:
                return False
            fitting = [pod for pod in pods if self.image in ("", image_of(pod)) and self.state in ("", pod.state)]
            enough = len(fitting) >= self.matching or not (self.image or self.state)
            return self.pods in (None, len(pods)) and sum(is_serving(pod) for pod in fitting) >= self.serving and enough

        await until(stage, reached, str(self))

    def _seen(self, stage: Stage) -> bool:
        workload = stage.current.get(stage.resource(""), NAMESPACE_NAME, self.owner)
        if workload is None:
            return False
        return workload.get("status", {}).get("observedGeneration") == workload["metadata"]["generation"]


def _is_begun(pod: Pod) -> bool:
    condition = pod.conditions.get(IN_PLACE_READY)
    return condition is not None and condition.status == "False"


def _namespace(resource: Resource) -> str:
    return NAMESPACE_NAME if resource.namespaced else ""


async def until(stage: Stage, condition: Callable[[], bool], what: str) -> None:
    """Wait for what is described as `what`. Stalled."""
    try:
        async with asyncio.timeout(PATIENCE):
            await stage.current.until(condition)
    except TimeoutError:
        raise Stalled(f"{what} did not come") from None


async def _expect(call: Awaitable[bytes], refused: str) -> None:
    """Await a request that must succeed, or be refused with the text."""
    try:
        await call
    except ApiError as error:
        if not refused or refused not in error.message:
            raise
    else:
        if refused:
            raise Stalled(f"not refused: {refused}")


async def _while_it_exists(change: Change, stage: Stage) -> None:
    try:
        await change.play(stage)
    except ApiError as error:
        if error.code not in (404, 409):
            raise


AnyStep = (
    Create
    | Change
    | Remove
    | RemovePod
    | ChangePod
    | ChangePods
    | NamePodsToDelete
    | LoseNode
    | ReturnNodes
    | BreakImage
    | Sleep
    | Wait
    | WaitGone
)
