"""BroadcastJobs on nodes that come and go, under kills, and their cost for the apiserver (broadcastjob.md §4.1, §4.3).

Each scenario reserves nodes of its own by a label.
"""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from flotilla_dev.cluster import kwok
from tests.support import cron
from tests.support.audit import on, said
from tests.support.broadcast import COMPLETES, NAME, begun, broadcastjob, crowded, end, is_active, pods_of, reached
from tests.support.churn import POOL
from tests.support.daemons import node_of
from tests.support.fleet import SERVICES, Fleet
from tests.support.workspace import Workspace, condition
from tests.testkit.documents import Json
from tests.testkit.planes import Own

FLAGS = ("--lease-duration=6", "--lease-retry-period=1", "--bus-fallback-after=6")
"""Shorter timeouts than the defaults, so that scenarios do not spend their time waiting."""

MANY, AT_ONCE = 20, 5
PACE = timedelta(seconds=2)
"""Between two runs of a schedule."""


def pool(space: Workspace, first: int, count: int, **spec: object) -> list[str]:
    """Create nodes for this scenario alone, from `node-<first>` on."""
    nodes = [kwok.node(index) | {"spec": spec} for index in range(first, first + count)]
    for node in nodes:
        node["metadata"]["labels"][POOL] = space.name
    space.create(*nodes)
    return [node["metadata"]["name"] for node in nodes]


def here(space: Workspace, *, pod: Json | None = None, **arguments: object) -> Json:
    """Return a BroadcastJob for the nodes of this scenario."""
    return broadcastjob(pod={"nodeSelector": {POOL: space.name}} | (pod or {}), **arguments)


def nodes_of(space: Workspace) -> list[str]:
    """Return the nodes with a pod of the job that is not terminating."""
    return sorted(node_of(pod) for pod in pods_of(space) if "deletionTimestamp" not in pod["metadata"])


def test_nodes_that_join(space: Workspace):
    """Rows 26 and 27: a job that never ends serves them; one that has ended does not."""
    first, second = pool(space, 10, 2)
    space.apply(here(space, template=COMPLETES, completionPolicy={"type": "Never"}))
    reached(space, phase="running", desired=2, active=0, succeeded=2)
    (third,) = pool(space, 12, 1)
    status = reached(space, phase="running", desired=3, active=0, succeeded=3)
    assert nodes_of(space) == [first, second, third]
    assert "completionTime" not in status
    space.patch({"spec": {"completionPolicy": {"type": "Always"}}}, NAME)
    reached(space, phase="completed", succeeded=3)
    (fourth,) = pool(space, 13, 1)
    space.kubectl("annotate", "node", fourth, "looked=at")
    space.apply(here(space, template=COMPLETES) | {"metadata": {"name": "later"}})
    reached(space, "later", phase="completed", desired=4, succeeded=4)
    assert nodes_of(space) == [first, second, third]
    reached(space, phase="completed", desired=3)


def test_nodes_that_are_cordoned(space: Workspace):
    """Rows 7 to 10."""
    first, second, third = pool(space, 20, 3)
    space.cluster.kubectl("cordon", first)
    space.apply(here(space))
    assert [node_of(pod) for pod in begun(space, 2)] == [second, third]
    reached(space, desired=2, active=2)
    space.cluster.kubectl("uncordon", first)
    begun(space, 3)
    reached(space, desired=3, active=3)
    space.cluster.kubectl("cordon", second)
    reached(space, desired=2, active=2, failed=0)
    space.until(lambda: nodes_of(space) == [first, third])
    space.until(lambda: any(reason == "SuccessfulDelete" for _, reason, _ in space.events()))
    tolerant = {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}
    space.apply(here(space, pod=tolerant) | {"metadata": {"name": "tolerant"}})
    assert len(begun(space, 3, "tolerant")) == 3


def test_nodes_that_are_tainted_or_deleted(space: Workspace):
    """A finished pod goes, too, as long as the job is not."""
    first, second, third = pool(space, 30, 3)
    space.apply(here(space))
    end(space, begun(space, 3)[:1])
    reached(space, desired=3, active=2, succeeded=1)
    space.cluster.kubectl("taint", "node", first, "example.com/full=:NoSchedule")
    reached(space, desired=2, active=2, succeeded=0)
    space.until(lambda: nodes_of(space) == [second, third])
    space.cluster.kubectl("delete", "node", third)  # its pod is counted until pods without a node are removed
    reached(space, desired=1, active=2)
    space.cluster.kubectl("taint", "node", first, "example.com/full-")
    space.until(lambda: nodes_of(space) == [first, second, third])
    reached(space, desired=2, active=3)


def test_what_it_costs(space: Workspace, own: Own):
    """Counted by the apiserver: two writes for each node, and a few statuses."""
    pool(space, 100, MANY)
    own.audit.ours()
    space.apply(here(space, template=COMPLETES))
    reached(space, phase="completed", desired=MANY, succeeded=MANY)
    space.until(lambda: all(condition(pod, "KruisePodReady") for pod in pods_of(space)))
    writes = [write for write in own.audit.ours() if write.object_ref.namespace == space.name]
    made = Counter(write.what for write in on(writes, "pods"))
    assert made == {"create pods": MANY, "patch pods/status": MANY}, said(writes)
    assert max(Counter(write.object_ref.name for write in on(writes, "pods") if write.object_ref.name).values()) <= 2
    assert len(on(writes, "broadcastjobs")) <= 12, said(writes)
    assert all(write.response_status.code < 300 for write in writes), said(writes)


class Scene:
    """A job over many nodes, a few at a time, while schedules start runs of two kinds."""

    def __init__(self, space: Workspace, first: int) -> None:
        self.space = space
        pool(space, first, MANY)
        one = cron.broadcasts(ends=True, pod={"nodeSelector": {"kubernetes.io/hostname": f"node-{first}"}})
        self.schedules = {"jobs": ("Job", cron.jobs(ends=True)), "sweeps": ("BroadcastJob", one)}
        for name, (_, made) in self.schedules.items():
            space.create(cron.cronjob(made, "@every 2s", name=name, **KEPT))
        space.until(lambda: all(self.runs(name) for name in self.schedules))
        space.apply(here(space, template=COMPLETES, parallelism=AT_ONCE))
        space.until(lambda: len(self.ended) >= AT_ONCE)

    @property
    def ended(self) -> list[Json]:
        """Return the job's pods that have ended."""
        return [pod for pod in pods_of(self.space) if pod["status"].get("phase") == "Succeeded"]

    def runs(self, schedule: str) -> list[str]:
        """Return the runs ever created for a schedule."""
        kind, _ = self.schedules[schedule]
        return [name for name in cron.ever(self.space, kind) if name.startswith(f"{schedule}-")]

    def finish(self) -> None:
        """Wait for the end of all work: one pod per node in total, and each run once, the latest included."""
        since = self.space.clock()
        reached(self.space, phase="completed", desired=MANY, succeeded=MANY, failed=0, seconds=120)
        made = [event.object for event in self.space.history() if event.type == "ADDED" and is_sweep(event.object)]
        assert len(made) == len({node_of(pod) for pod in made}) == MANY
        for pods in self.space.moments():
            own = [pod for pod in pods.values() if is_sweep(pod)]
            assert sum(map(is_active, own)) <= AT_ONCE
            assert not crowded(own)
        for schedule in self.schedules:
            self.space.until(lambda schedule=schedule: bool(self.runs(schedule)) and self.latest(schedule) > since)
            times = [int(name.rpartition("-")[2]) for name in self.runs(schedule)]
            assert len(set(times)) == len(times)
            assert all((time - times[0]) % PACE.seconds == 0 for time in times)
            self.space.kubectl("delete", "acj", schedule)

    def latest(self, schedule: str) -> object:
        """Return when the latest run was due."""
        kind, _ = self.schedules[schedule]
        return max(map(cron.due, cron.runs(self.space, kind, schedule).values()), default=None)


KEPT = {"successfulJobsHistoryLimit": 100}


def is_sweep(pod: Json) -> bool:
    return pod["metadata"].get("labels", {}).get("broadcastjob-name") == NAME


@pytest.fixture
def flotilla(own: Own) -> Fleet:
    return own.fleet


@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_service(space: Workspace, flotilla: Fleet):
    scene = await asyncio.to_thread(Scene, space, 200)
    assert len(scene.ended) < MANY
    await flotilla.restart("jobs")
    await asyncio.to_thread(scene.finish)


@pytest.mark.asyncio(loop_scope="module")
async def test_everything_killed(space: Workspace, flotilla: Fleet):
    scene = await asyncio.to_thread(Scene, space, 400)
    for service in (*SERVICES, "sidecar", "jobs"):
        flotilla.kill(service)
    await flotilla.wipe_bus()
    for service in (*SERVICES, "sidecar", "jobs"):
        await flotilla.start(service, wait=False)
    await asyncio.to_thread(scene.finish)
    await flotilla.healthy()
