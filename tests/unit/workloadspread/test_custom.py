"""Workloads of kinds that administrators name, as the controller sees them (workloadspread.md §3, §8.1)."""

import asyncio
from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.kinds.workloadspread.types import WorkloadSpread
from flotilla_common.api.resources import Resource
from flotilla_common.control.keystate import Memory
from flotilla_common.kube.interface import ApiError
from flotilla_topology.workloadspread.controller import CONTROLLER, PODS, SPREADS, Options
from flotilla_topology.workloadspread.custom import CONFIGURATIONS
from flotilla_topology.workloadspread.plan import plan
from flotilla_topology.workloadspread.snapshot import WorkloadSpreadSnapshot
from tests.support.controller_context import TURNS, FakeContext
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json, decoded, metadata, owner
from tests.unit.workloadspread.build import NOW, pod, spread, subset

ENTRY = {"group": "train.io", "version": "v1", "kind": "TrainJob", "replicasPath": "spec.worker.replicas"}
SERVED = [
    {"name": "trainjobs", "kind": "TrainJob", "namespaced": True},
    {"name": "trainjobs/scale", "kind": "Scale", "namespaced": True},
]


TRAIN_JOBS = Resource("train.io", "v1", "trainjobs", "TrainJob")


def apiserver(*, listed: bool = True, scaled: bool = True) -> FakeApi:
    """Return an apiserver with one TrainJob."""
    made = FakeApi(errors={} if listed else {"trainjobs": ApiError(403, "Forbidden", "may not list")}, version=4)
    made.serve("train.io/v1", *(SERVED if scaled else SERVED[:1]))
    made.put(TRAIN_JOBS, {"metadata": metadata("net", "ns", uid="u-net"), "spec": {"worker": {"replicas": 4}}})
    made.scales["net"] = {"status": {"selector": ""}}
    return made


class World:
    """A WorkloadSpread about a TrainJob, and its gatherer."""

    def __init__(self, server: FakeApi | None = None, *entries: Json, **target_filter: Any) -> None:
        self.server = server or apiserver()
        self.context = FakeContext()
        self.tasks: list[asyncio.Future[None]] = []
        self.configuration = 0
        self.context.api = self.server.api
        self.gatherer = self.context.build(CONTROLLER, Options())
        document = spread(subset("a", "50%"), subset("b"))
        document["spec"]["targetRef"] = {"apiVersion": "train.io/v1", "kind": "TrainJob", "name": "net"}
        if target_filter:
            document["spec"]["targetFilter"] = target_filter
        self.context.put(SPREADS, decoded(document, WorkloadSpread))
        self.configure(*(entries or (ENTRY,)))

    def configure(self, *entries: Json) -> None:
        data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": msgspec.json.encode({"workloads": entries}).decode()}
        self.configuration += 1
        meta = metadata("kruise-configuration", "kruise-system", uid="u", version=self.configuration)
        self.context.put(CONFIGURATIONS, decoded({"metadata": meta, "data": data}, ConfigMap))

    def change(self, **document: Any) -> None:
        """Change the TrainJob."""
        changed = self.server.put(TRAIN_JOBS, self.server.named(TRAIN_JOBS, "ns", "net") | document)
        self.server.send(TRAIN_JOBS, "MODIFIED", changed)

    def put(self, *pods: Json) -> None:
        self.context.put(PODS, *(decoded(one, Pod) for one in pods))

    async def work(self) -> None:
        """Let what runs beside do what it can."""
        self.tasks = self.tasks or [asyncio.ensure_future(task()) for task in self.context.tasks]
        for _ in range(2 * TURNS):
            await asyncio.sleep(0)
        assert not any(task.done() for task in self.tasks)

    def snapshot(self) -> WorkloadSpreadSnapshot:
        found = self.gatherer.gather(("ns", "ws"), Memory())
        assert found is not None
        return found

    def names(self) -> list[str]:
        return [one.metadata.name for one in self.snapshot().pods]


def owned(name: str, kind: str = "TrainJob", uid: str = "u-net", subset: str | None = None, **labels: str) -> Json:
    api_version = "train.io/v1" if kind.startswith("Train") else "apps/v1"
    return pod(name, subset, ownerReferences=[owner(kind, "net", uid, api_version)], labels=labels)


@pytest.mark.parametrize("listed", [True, False], ids=["listed and watched", "may only be read"])
async def test_the_workload_and_its_own_pods(listed: bool) -> None:
    world = World(apiserver(listed=listed))
    world.put(owned("p"), owned("other", uid="u-other"))
    assert "or it is being looked up" in world.snapshot().unfollowed
    await world.work()
    found = world.snapshot()
    assert (found.unfollowed, found.unreadable) == ("", "")
    assert found.target is not None
    assert (found.target.replicas, found.target.costed, found.target.rests) == (4, False, False)
    assert world.names() == ["p"]
    assert ("ns", "ws") in world.context.replanned


async def test_a_kind_that_nobody_names_is_said() -> None:
    world = World()
    world.configure()
    await world.work()
    made = plan(world.snapshot(), NOW)
    assert [(one.code, one.message) for one in made.reasons] == [
        ("TargetNotFollowed", "nothing is done: no ConfigMap names TrainJob of train.io, or it is being looked up")
    ]
    assert (made.status, made.errors, made.actions) == (None, (), [])


async def test_the_list_is_read_anew() -> None:
    world = World(apiserver(scaled=False))
    await world.work()
    world.context.woken.clear()
    world.configure(ENTRY | {"replicasPath": "spec.total"})
    assert world.context.woken == [("ns", "ws")]
    world.change(spec={"total": 9})
    await world.work()
    target = world.snapshot().target
    assert target is not None
    assert target.replicas == 9


@pytest.mark.parametrize(
    ("entry", "target_filter", "expected"),
    [
        pytest.param(ENTRY, {}, 4, id="the list's path"),
        pytest.param(
            ENTRY, {"replicasPathList": ["spec.worker.replicas", "spec.worker.replicas"]}, 8, id="the filter's"
        ),
        pytest.param(ENTRY | {"replicasPath": ""}, {}, 0, id="no path"),
        pytest.param(ENTRY | {"replicasPath": "spec.nowhere"}, {}, "the workload has no spec.nowhere", id="nowhere"),
        pytest.param(
            ENTRY, {"replicasPathList": ["spec.worker"]}, "spec.worker of the workload is not a number", id="no number"
        ),
    ],
)
async def test_how_many_pods_there_are_to_be(entry: Json, target_filter: Json, expected: int | str) -> None:
    world = World(apiserver(scaled=False), entry, **target_filter)
    await world.work()
    found = world.snapshot()
    assert (found.unreadable or (found.target is not None and found.target.replicas)) == expected


async def test_only_a_change_of_that_number_matters() -> None:
    world = World()
    await world.work()
    world.context.replanned.clear()
    world.change(spec={"worker": {"replicas": 4}, "image": "new"}, status={"active": 1})
    await world.work()
    assert world.context.replanned == []
    world.change(spec={"worker": {"replicas": 5}})
    await world.work()
    assert world.context.replanned == [("ns", "ws")]


async def test_pods_that_it_selects_count_where_it_owns_none() -> None:
    world = World()
    world.server.scales["net"] = {"status": {"selector": "job=net"}}
    world.put(owned("p", uid="u-operator", job="net"), owned("q", uid="u-operator", job="other"))
    await world.work()
    assert "reading the pod selector of net" in world.snapshot().unfollowed
    await world.work()
    assert world.names() == ["p"]
    world.put(owned("own"))
    assert world.names() == ["own"]


@pytest.mark.parametrize("selector", ["", "no selector!"])
async def test_one_that_selects_nothing(selector: str) -> None:
    world = World()
    world.server.scales["net"] = {"status": {"selector": selector}}
    world.put(owned("p", uid="u-operator", job="net"))
    await world.work()
    assert world.snapshot().unfollowed
    await world.work()
    assert world.names() == []


async def test_without_a_scale_nothing_is_asked() -> None:
    world = World(apiserver(scaled=False))
    await world.work()
    assert (world.names(), world.server.gets) == ([], [])


async def test_pods_of_what_is_below_count_by_their_mark() -> None:
    between = [{"group": "train.io", "version": "v1", "kind": "TrainGroup"}]
    world = World(apiserver(scaled=False), ENTRY | {"subResources": between})
    world.put(
        owned("p", "TrainGroup", "u-group", "a"),
        owned("q", "TrainGroup", "u-group"),
        owned("r", "TrainGroup", "u-group", "a") | {"metadata": {"name": "r", "namespace": "else", "uid": "u-r"}},
        owned("s", "ReplicaSet", "u-set", "b"),
        owned("t", "TrainOther", "u-other", "a"),
        owned("own", subset="a"),
    )
    await world.work()
    assert sorted(world.names()) == ["own", "p", "s"]


async def test_pods_of_the_workload_wake_its_workload_spread() -> None:
    world = World()
    await world.work()
    world.context.woken.clear()
    world.put(owned("p"))
    assert world.context.woken == [("ns", "ws")]


async def test_a_workload_that_is_not_there() -> None:
    world = World()
    await world.work()
    world.server.send(TRAIN_JOBS, "DELETED", world.server.named(TRAIN_JOBS, "ns", "net"))
    await world.work()
    found = world.snapshot()
    assert (found.target, found.unfollowed, found.unreadable) == (None, "", "")
