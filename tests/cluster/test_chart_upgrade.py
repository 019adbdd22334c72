"""`helm upgrade` from the release before to this one, and `helm rollback`, in the middle of rollouts of 200 pods.

Both begin with the watcher alone: services of the one release work with a watcher of the other for a whole rollout, in
both directions. Then helm replaces everything else, and both releases share the bus meanwhile. Rollouts follow each
other as long as that takes, and the whole history of each is checked (`tests.support.observer`). Beside them, a
StatefulSet is updated whose pods have a sidecar.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from flotilla_common.api.core import Pod
from flotilla_dev.image.build import reference
from tests.support.audit import AuditLog
from tests.support.doctor import doctor_of_chart
from tests.support.former import Former, former
from tests.support.helm import PATIENCE, Release, Value, release
from tests.support.nodes import real_cluster
from tests.support.scene import Rollout, Scene, rollout, unhurried
from tests.support.stateful import statefulset
from tests.testkit.documents import Json

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
FAKE_NODES = 10
FAKE = {"type": "kwok"}
OURS: dict[str, Value] = {
    **{f"{part}__nodeSelector__type": "real" for part in ("manager", "daemon", "nats")},
    "manager__replicas": 1,  # the new one is there before the old one ends, as with two
}
PODS, AT_ONCE = 200, 20
WRITES_PER_POD = 3
NEIGHBOURS = 10


class Neighbours:
    """A StatefulSet whose pods have a sidecar; both are updated in place."""

    def __init__(self, place: Scene[Release]) -> None:
        self._place = place
        self._changes = 0
        self._uids: set[str] = set()

    async def create(self) -> None:
        """Return when all pods are ready."""
        strategy = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "50%"}
        workload = statefulset(NEIGHBOURS, name="db", strategy=strategy)
        workload["spec"]["template"]["spec"] |= {"nodeSelector": FAKE, "containers": [_container("main")]}
        await self._place.create(_sidecar_set(), workload)
        await self.settle()
        self._uids = self._now()

    async def change(self) -> None:
        """Change the images of the containers and of the sidecars."""
        self._changes += 1
        image = f"nginx:{self._changes}"
        await self._place.roll("db", image, kind="asts")
        await self._place.roll("mesh", image, kind="sidecarset", spec="/spec")

    async def settle(self) -> None:
        """Wait until all containers run the image, each of them restarted once by each change."""
        wanted = {(name, f"nginx:{self._changes}", self._changes) for name in ("main", "proxy")}
        await self._place.seen.until(
            lambda: [pod.ready and _containers(pod) == wanted for pod in self._pods()] == [True] * NEIGHBOURS,
            what=f"{NEIGHBOURS} pods with {sorted(wanted)}",
        )
        assert not self._uids or self._now() == self._uids

    def _now(self) -> set[str]:
        return {pod.metadata.uid for pod in self._pods()}

    def _pods(self) -> list[Pod]:
        return [pod for pod in self._place.seen.pods.values() if pod.metadata.labels.get("app") == "db"]


def _container(name: str) -> Json:
    return {"name": name, "image": "nginx:0"}


def _sidecar_set() -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": "mesh"},
        "spec": {
            "selector": {"matchLabels": {"app": "db"}},
            "containers": [_container("proxy")],
            "updateStrategy": {"maxUnavailable": "50%"},
        },
    }


def _containers(pod: Pod) -> set[tuple[str, str, int]]:
    return {(one.name, one.image, one.restart_count) for one in pod.status.container_statuses}


class Stage:
    """The CloneSet with its rollouts and the neighbours, and exact counts of what was done to them."""

    def __init__(self, web: Rollout, neighbours: Neighbours, audit: AuditLog) -> None:
        self._web = web
        self._neighbours = neighbours
        self._audit = audit
        self._rollouts = 0

    async def throughout(self, disturbance: Coroutine[Any, Any, None]) -> None:
        """Roll as long as it lasts. Nothing is lost, written twice, restarted twice or created again."""
        self._writes()
        await self._neighbours.change()
        rollouts = await self._web.throughout(disturbance)
        await self._neighbours.settle()
        assert self._writes() == rollouts * PODS * WRITES_PER_POD
        self._rollouts += rollouts
        pods = self._web.place.seen.of("web")
        assert {one.restart_count for pod in pods for one in pod.status.container_statuses} == {self._rollouts}

    async def undisturbed(self) -> None:
        """Roll once."""
        await self.throughout(asyncio.sleep(0))

    def _writes(self) -> int:
        """Return how many writes of the CloneSet's pods our services made since the last call."""
        return sum(
            write.object_ref.resource == "pods"
            and write.object_ref.name.startswith("web-")
            and write.response_status.code < 300
            for write in self._audit.ours()
        )


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def before() -> Former:
    return former()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory, audit: AuditLog, before: Former) -> AsyncIterator[Release]:
    """Install chart and image of the release before."""
    folder = tmp_path_factory.mktemp("plane")
    async with real_cluster(folder, nodes=1, apiserver_flags=audit.flags, kubelet=unhurried(AT_ONCE)) as cluster:
        await cluster.plane.add_nodes(FAKE_NODES)
        before.push(cluster)
        async with release(cluster, before.chart, manager__image__tag=before.tag, **OURS) as installed:
            yield installed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(flotilla: Release, audit: AuditLog) -> AsyncIterator[Stage]:
    async with rollout(flotilla, PODS, AT_ONCE, nodes=FAKE) as web:
        neighbours = Neighbours(web.place)
        await neighbours.create()
        yield Stage(web, neighbours, audit)


async def upgrade(flotilla: Release) -> None:
    """Go to this release, as docs/operations.md says."""
    await asyncio.to_thread(flotilla.helm.install, "upgrade", **OURS)


def ours(flotilla: Release, *services: str) -> set[str]:
    """Return the images of these services, of all without any, but that of the bus."""
    images = flotilla.images()
    return set().union(*(images[service] for service in services or images.keys() - {"bus"}))


async def test_the_upgrade(flotilla: Release, stage: Stage, before: Former) -> None:
    await stage.throughout(flotilla.use("watcher", reference()))
    assert (ours(flotilla, "watcher"), ours(flotilla, "cloneset")) == ({reference()}, {before.reference})
    await stage.undisturbed()
    await stage.throughout(upgrade(flotilla))
    assert ours(flotilla) == {reference()}
    await flotilla.healthy()


async def test_the_way_back(flotilla: Release, stage: Stage, before: Former) -> None:
    """While the watcher is the former one, new services read pods from the apiserver."""

    async def back() -> None:
        await asyncio.to_thread(flotilla.helm.run, "rollback", "flotilla", "1", "--wait", "--timeout", PATIENCE)

    await stage.throughout(flotilla.use("watcher", before.reference))
    assert (ours(flotilla, "watcher"), ours(flotilla, "cloneset")) == ({before.reference}, {reference()})
    await stage.undisturbed()
    await stage.throughout(back())
    assert ours(flotilla) == {before.reference}
    await flotilla.healthy()


async def test_forward_again(flotilla: Release, stage: Stage, tmp_path: Path) -> None:
    """The stream has the subjects of both releases by now, and that leaves nothing behind."""
    await stage.throughout(upgrade(flotilla))
    assert ours(flotilla) == {reference()}
    await flotilla.healthy()
    code, report = await doctor_of_chart(flotilla, tmp_path)
    assert (code, report["findings"], report["notChecked"]) == (0, [], {})
