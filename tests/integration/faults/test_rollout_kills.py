"""Rollouts of other workloads under kills and wipes.

Pods keep their identities, no container restarts twice, budgets hold, and no write is repeated.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from tests.support import united
from tests.support.fleet import SERVICES, Fleet
from tests.support.meshed import NEW, Meshed, at_work, image_of, meshed
from tests.support.stateful import IN_PLACE, serving, statefulset
from tests.support.workspace import Workspace, cloneset, identity, image, restarts, watched

PODS, DOWN, SUBSET_PODS = 30, 5, 18
HELD = 3
"""Pods that a partition holds back in one subset of six."""
IMAGE = "nginx:mainline"
MORE = ("sidecar", "statefulset", "topology")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def staffed(flotilla: Fleet) -> Fleet:
    """Start the services of the other kinds, too."""
    for service in MORE:
        await flotilla.start(service, wait=False)
    await flotilla.healthy()
    return flotilla


class Story(ABC):
    """A change of many pods: `begin` returns while it is under way, `end` checks its result and its course."""

    @abstractmethod
    async def begin(self) -> None:
        """Start the change, and wait until it is under way."""

    @abstractmethod
    async def end(self) -> None:
        """Wait for the end, and check that nothing broke."""


class SidecarRollout(Story):
    """A new image of the sidecars of 30 pods: pods stay, and at most maxUnavailable are being updated."""

    def __init__(self, space: Meshed) -> None:
        self.space = space

    async def begin(self) -> None:
        space = self.space
        space.sidecar_set(maxUnavailable=DOWN)
        space.apply(cloneset(PODS))
        await asyncio.to_thread(space.comes_to, PODS, PODS, PODS, PODS, seconds=120)
        self.before, self.mark = {identity(pod) for pod in space.pods.values()}, space.now()
        space.set_sidecar(NEW)
        await asyncio.to_thread(space.until, lambda: self.done() >= DOWN)

    async def end(self) -> None:
        space = self.space
        await asyncio.to_thread(space.comes_to, PODS, PODS, PODS, PODS, seconds=120)
        assert {identity(pod) for pod in space.pods.values()} == self.before
        for pod in space.pods.values():
            found = {one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]}
            assert found == {"nginx": 0, "proxy": 1}
        assert max(at_work(pods) for pods in space.moments(self.mark)) <= DOWN
        assert sorted(space.stored().values()) == [1, 2]

    def done(self) -> int:
        """Return the number of pods with the new sidecar."""
        return sum(image_of(pod, "proxy") == NEW for pod in self.space.pods.values())


class StatefulRollout(Story):
    """An update in place of 30 pods: identities and claims stay, and at most maxUnavailable pods are down."""

    def __init__(self, space: Workspace) -> None:
        self.space = space

    async def begin(self) -> None:
        space = self.space
        space.apply(statefulset(PODS, strategy=IN_PLACE | {"maxUnavailable": DOWN}, claims=["data"]))
        await asyncio.to_thread(space.settled, "web", 120, replicas=PODS, readyReplicas=PODS)
        self.before, self.mark = {identity(pod) for pod in space.pods.values()}, space.now()
        space.set_image(IMAGE, "web")
        await asyncio.to_thread(space.until, lambda: updated(space) >= DOWN)
        assert updated(space) < PODS

    async def end(self) -> None:
        space = self.space
        await asyncio.to_thread(space.settled, "web", 120, updatedReadyReplicas=PODS, readyReplicas=PODS)
        assert {identity(pod) for pod in space.pods.values()} == self.before
        assert {restarts(pod) for pod in space.pods.values()} == {1}
        assert min(serving(pods) for pods in space.moments(self.mark)) >= PODS - DOWN
        assert len(space.read("pvc")["items"]) == PODS


class SubsetRollout(Story):
    """An update in place of three subsets, held at half of one: it stops at its partition, without another child."""

    def __init__(self, space: Workspace) -> None:
        self.space = space

    async def begin(self) -> None:
        space = self.space
        manifest = united.united(SUBSET_PODS, "abc", partitions={"c": HELD})
        rolling = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 2}}
        manifest["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] = rolling
        space.apply(manifest)
        await asyncio.to_thread(united.settled, space, SUBSET_PODS, 120)
        self.mark = space.now()
        united.set_image(space, IMAGE)
        await asyncio.to_thread(space.until, lambda: updated(space) >= 3)
        self.before = {identity(pod) for pod in space.pods.values()}

    async def end(self) -> None:
        space, new = self.space, SUBSET_PODS - HELD
        wanted = {"readyReplicas": SUBSET_PODS, "updatedReplicas": new, "updatedReadyReplicas": new}
        await asyncio.to_thread(space.settled, united.NAME, 120, **wanted)
        assert {identity(pod) for pod in space.pods.values()} == self.before
        assert updated(space) == new
        assert max(sum(image(pod) == IMAGE for pod in pods.values()) for pods in space.moments(self.mark)) == new
        assert len(united.children(space)) == 3


class SubsetMove(Story):
    """Pods that move to another subset: no child is made twice, though names of children are made up."""

    def __init__(self, space: Workspace) -> None:
        self.space = space

    async def begin(self) -> None:
        space = self.space
        space.apply(united.united(SUBSET_PODS, "abc"))
        await asyncio.to_thread(united.settled, space, SUBSET_PODS, 120)
        self.mark = space.now()
        space.apply(united.united(SUBSET_PODS, "abd"))
        await asyncio.to_thread(space.until, lambda: "d" in united.children(space))

    async def end(self) -> None:
        space = self.space
        await asyncio.to_thread(space.until, lambda: united.replicas_of(space) == {"a": 6, "b": 6, "d": 6}, 120)
        await asyncio.to_thread(united.settled, space, SUBSET_PODS, 120)
        assert min(united.serving(pods) for pods in space.moments(self.mark)) >= SUBSET_PODS


def updated(space: Workspace) -> int:
    """Return the number of pods with the new image."""
    return sum(image(pod) == IMAGE for pod in space.pods.values())


@pytest.fixture
def story(request: pytest.FixtureRequest, staffed: Fleet) -> Iterator[Story]:
    """Yield the story that the test names, in a namespace of its own."""
    title = request.node.nodeid
    if request.param is SidecarRollout:
        made: AbstractContextManager[Workspace] = meshed(staffed.cluster, title)
    else:
        kinds = (STATEFUL_SET,) if request.param is StatefulRollout else (UNITED_DEPLOYMENT, *united.CHILDREN)
        made = watched(staffed.cluster, title, *kinds)
    with made as space:
        yield request.param(space)
    staffed.cluster.kubectl("delete", "namespace", space.name, "--wait=false")


KILLS = [
    (SidecarRollout, "sidecar"),
    (StatefulRollout, "statefulset"),
    (SubsetRollout, "topology"),
    (SubsetRollout, "cloneset"),
]


@pytest.mark.parametrize(
    ("story", "service"), KILLS, indirect=["story"], ids=[f"{story.__name__}-{service}" for story, service in KILLS]
)
async def test_a_service(staffed: Fleet, story: Story, service: str) -> None:
    await story.begin()
    await staffed.restart(service)
    await story.end()


@pytest.mark.parametrize("story", [StatefulRollout], indirect=True)
async def test_a_wiped_bus(staffed: Fleet, story: Story) -> None:
    await story.begin()
    await staffed.wipe_bus()
    await story.end()


@pytest.mark.parametrize("story", [SidecarRollout, StatefulRollout, SubsetMove], indirect=True)
async def test_all_services_and_the_bus(staffed: Fleet, story: Story) -> None:
    await story.begin()
    for service in (*SERVICES, *MORE):
        staffed.kill(service)
    await staffed.kill_bus()
    await staffed.start_bus()
    for service in (*SERVICES, *MORE):
        await staffed.start(service, wait=False)
    await story.end()
