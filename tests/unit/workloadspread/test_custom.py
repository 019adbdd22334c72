"""Workloads of kinds that administrators name, as the controller sees them (workloadspread.md §3, §8.1)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.kinds.workloadspread.types import WorkloadSpread
from flotilla_common.api.resources import Resource
from flotilla_common.control.keystate import Memory
from flotilla_common.kube.interface import Api, ApiError, Page, WatchEvent
from flotilla_topology.workloadspread.controller import CONTROLLER, PODS, SPREADS, Options
from flotilla_topology.workloadspread.custom import CONFIGURATIONS
from flotilla_topology.workloadspread.plan import plan
from flotilla_topology.workloadspread.snapshot import WorkloadSpreadSnapshot
from tests.support.controller_context import TURNS, FakeContext
from tests.testkit.documents import Json
from tests.unit.workloadspread.build import NOW, pod, read, spread, subset

ENTRY = {"group": "train.io", "version": "v1", "kind": "TrainJob", "replicasPath": "spec.worker.replicas"}
SERVED = [
    {"name": "trainjobs", "kind": "TrainJob", "namespaced": True},
    {"name": "trainjobs/scale", "kind": "Scale", "namespaced": True},
]


class Apiserver:
    """Serves one TrainJob."""

    def __init__(self, *, listed: bool = True, scaled: bool = True) -> None:
        self.served = SERVED if scaled else SERVED[:1]
        self.listed = listed
        self.selector = ""
        self.version = 5
        self.document: Json = {"spec": {"worker": {"replicas": 4}}}
        self.events: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self.scales_read = 0

    def encoded(self) -> bytes:
        metadata = {"name": "net", "namespace": "ns", "uid": "u-net", "resourceVersion": str(self.version)}
        return msgspec.json.encode({"metadata": metadata} | self.document)

    def change(self, **document: Any) -> None:
        self.version += 1
        self.document |= document
        self.events.put_nowait(WatchEvent("MODIFIED", msgspec.Raw(self.encoded())))

    async def raw(self, method: str, path: str) -> bytes:
        return msgspec.json.encode({"resources": self.served})

    async def get(self, resource: Resource, namespace: str, name: str, subresource: str = "") -> bytes:
        if subresource == "scale":
            self.scales_read += 1
            return msgspec.json.encode({"status": {"selector": self.selector}})
        return self.encoded()

    async def list(self, *_: Any, **__: Any) -> Page:
        if not self.listed:
            raise ApiError(403, "Forbidden", "may not list")
        return Page([msgspec.Raw(self.encoded())], str(self.version))

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        while True:
            yield await self.events.get()


class World:
    """A WorkloadSpread about a TrainJob, and its gatherer."""

    def __init__(self, server: Apiserver | None = None, *entries: Json, **target_filter: Any) -> None:
        self.server = server or Apiserver()
        self.context = FakeContext()
        self.tasks: list[asyncio.Future[None]] = []
        self.configuration = 0
        self.context.api = cast("Api", self.server)
        self.gatherer = self.context.build(CONTROLLER, Options())
        document = spread(subset("a", "50%"), subset("b"))
        document["spec"]["targetRef"] = {"apiVersion": "train.io/v1", "kind": "TrainJob", "name": "net"}
        if target_filter:
            document["spec"]["targetFilter"] = target_filter
        self.context.put(SPREADS, read(document, WorkloadSpread))
        self.configure(*(entries or (ENTRY,)))

    def configure(self, *entries: Json) -> None:
        data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": msgspec.json.encode({"workloads": entries}).decode()}
        self.configuration += 1
        metadata = {
            "name": "kruise-configuration",
            "namespace": "kruise-system",
            "resourceVersion": str(self.configuration),
        }
        self.context.put(CONFIGURATIONS, read({"metadata": metadata | {"uid": "u"}, "data": data}, ConfigMap))

    def put(self, *pods: Json) -> None:
        self.context.put(PODS, *(read(one, Pod) for one in pods))

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
    owner = {"apiVersion": api_version, "kind": kind, "name": "net", "uid": uid, "controller": True}
    return pod(name, subset, ownerReferences=[owner], labels=labels)


@pytest.mark.parametrize("listed", [True, False], ids=["listed and watched", "may only be read"])
async def test_the_workload_and_its_own_pods(listed: bool) -> None:
    world = World(Apiserver(listed=listed))
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
        (
            "TargetNotFollowed",
            "nothing is done: no ConfigMap names TrainJob of train.io, or it is being looked up",
        )
    ]
    assert (made.status, made.errors, made.actions) == (None, (), [])


async def test_the_list_is_read_anew() -> None:
    world = World(Apiserver(scaled=False))
    await world.work()
    world.context.woken.clear()
    world.configure(ENTRY | {"replicasPath": "spec.total"})
    assert world.context.woken == [("ns", "ws")]
    world.server.change(spec={"total": 9})
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
    world = World(Apiserver(scaled=False), entry, **target_filter)
    await world.work()
    found = world.snapshot()
    assert (found.unreadable or (found.target is not None and found.target.replicas)) == expected


async def test_only_a_change_of_that_number_matters() -> None:
    world = World()
    await world.work()
    world.context.replanned.clear()
    world.server.change(spec={"worker": {"replicas": 4}, "image": "new"}, status={"active": 1})
    await world.work()
    assert world.context.replanned == []
    world.server.change(spec={"worker": {"replicas": 5}})
    await world.work()
    assert world.context.replanned == [("ns", "ws")]


async def test_pods_that_it_selects_count_where_it_owns_none() -> None:
    world = World()
    world.server.selector = "job=net"
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
    world.server.selector = selector
    world.put(owned("p", uid="u-operator", job="net"))
    await world.work()
    assert world.snapshot().unfollowed
    await world.work()
    assert world.names() == []


async def test_without_a_scale_nothing_is_asked() -> None:
    world = World(Apiserver(scaled=False))
    await world.work()
    assert (world.names(), world.server.scales_read) == ([], 0)


async def test_pods_of_what_is_below_count_by_their_mark() -> None:
    between = [{"group": "train.io", "version": "v1", "kind": "TrainGroup"}]
    world = World(Apiserver(scaled=False), ENTRY | {"subResources": between})
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
    world.server.events.put_nowait(WatchEvent("DELETED", msgspec.Raw(world.server.encoded())))
    await world.work()
    found = world.snapshot()
    assert (found.target, found.unfollowed, found.unreadable) == (None, "", "")
