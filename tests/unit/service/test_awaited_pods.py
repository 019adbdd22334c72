"""Keys that wait until the pods near their objects are in the table."""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import ObjectRef, Plan
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Near, Pods, Watch
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from flotilla_common.service_runner import ServiceRunner, _AwaitedPods
from tests.support.fake_bus import FakeBus
from tests.unit.service.bench import FakeApi, context

BUDGET = POD_UNAVAILABLE_BUDGET


class Rule(Model, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    also: str = ""  # a second namespace
    over: bool = False  # it needs no pods any more


def needed(rule: Rule) -> Iterable[str]:
    return [] if rule.over else [one for one in (rule.metadata.namespace, rule.also) if one]


RULES, NODES = Watch(BUDGET, Rule), Watch(NODE, Rule)
PODS = Watch(POD, Pod, pods=Pods(near=(Near(RULES, needed),)))


def rule(name: str = "a", namespace: str = "shop", **more: Any) -> Rule:
    meta = ObjectMeta(name=name, namespace=namespace, uid=f"u-{name}", resource_version="1")
    return Rule(metadata=meta, **more)


class Covering:
    """A mirror whose table holds the pods of some namespaces."""

    def __init__(self) -> None:
        self.namespaces: set[str] = set()

    def covers(self, resource: Resource, namespace: str) -> bool:
        assert resource == POD
        return namespace in self.namespaces


class Snap(msgspec.Struct, frozen=True):
    subject: ObjectRef


class Gatherer:
    def __init__(self, live_context: ControllerContext, options: None) -> None:
        self.table = live_context.table(RULES)

    def gather(self, key: Key, memory: Memory) -> Snap | None:
        found = self.table.get(*key)
        return None if found is None else Snap(ObjectRef.of(BUDGET, found.metadata))


def spec(*watches: Watch[Any]) -> ControllerSpec[Snap, Any]:
    return ControllerSpec(
        name="rules", primary=RULES, watches=watches, workers=1, build=Gatherer, plan=lambda snapshot, now: Plan()
    )


def awaited(*rules: Rule, watch: Watch[Any] = PODS) -> tuple[_AwaitedPods, Covering]:
    mirror, table = Covering(), Table[Rule]()
    for one in rules:
        table.apply(one)
    return _AwaitedPods(cast("Mirror", mirror), spec(NODES, watch), table), mirror


def test_a_key_waits_until_its_pods_are_there_and_is_returned_once() -> None:
    keys, mirror = awaited(rule(), rule("b", "bank"))
    assert keys.holds_back(("shop", "a"))
    assert keys.holds_back(("shop", "a"))
    assert keys.holds_back(("bank", "b"))
    assert keys.release() == []
    mirror.namespaces = {"shop"}
    assert keys.release() == [("shop", "a")]
    assert keys.release() == []
    assert not keys.holds_back(("shop", "a"))
    mirror.namespaces = {"bank"}
    assert keys.release() == [("bank", "b")]


def test_all_namespaces_of_an_object_are_waited_for() -> None:
    keys, mirror = awaited(rule(also="bank"))
    for namespaces, waits in (({"shop"}, True), ({"bank"}, True), ({"shop", "bank"}, False)):
        mirror.namespaces = namespaces
        assert keys.holds_back(("shop", "a")) is waits


NOT_NEAR = Watch(POD, Pod, pods=Pods(orphans=True, sidecars=True))
OF_NODES = Watch(POD, Pod, pods=Pods(near=(Near(NODES),)))


@pytest.mark.parametrize(
    ("rules", "watch"),
    [
        pytest.param([], PODS, id="it is absent"),
        pytest.param([rule(over=True)], PODS, id="it needs no pods"),
        pytest.param([rule()], NOT_NEAR, id="its kind needs no pods near"),
        pytest.param([rule()], OF_NODES, id="another kind needs them"),
        pytest.param([rule()], Watch(POD, Pod), id="all pods are needed"),
    ],
)
def test_a_key_does_not_wait_in_vain(rules: list[Rule], watch: Watch[Any]) -> None:
    keys, _ = awaited(*rules, watch=watch)
    assert not keys.holds_back(("shop", "a"))
    assert keys.release() == []


def test_a_key_whose_object_has_gone_is_returned() -> None:
    mirror, table = Covering(), Table[Rule]()
    keys = _AwaitedPods(cast("Mirror", mirror), spec(PODS), table)
    table.apply(rule())
    assert keys.holds_back(("shop", "a"))
    table.remove("shop", "a")
    assert keys.release() == [("shop", "a")], "its absence may have to be planned"


async def test_an_object_is_planned_when_its_pods_arrive() -> None:
    runner = ServiceRunner(context(FakeApi()))
    await runner.serve(spec(PODS))
    runner.shards.owns = lambda namespace, name: True  # type: ignore[method-assign]
    bus = cast("FakeBus", runner.context.bus)
    await bus.ensure_stream(subjects.kube_stream(POD))
    marker = subjects.Marker(epoch="e1", state=subjects.SYNCED, rv="1", layout=subjects.LAYOUT)
    await bus.publish(subjects.kube_marker(POD), msgspec.json.encode(marker), {"epoch": "e1"})
    await runner.mirror._feeds[POD].start()
    (served,) = runner._served
    runner.mirror.written(BUDGET, msgspec.json.encode(rule()))
    gather, queue = served.controller._gather, served.controller.queue
    assert gather(("shop", "a"), Memory()) is None
    await queue.get()
    assert len(queue) == 0
    queue.done(("shop", "a"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(queue) == 1
    assert gather(("shop", "a"), Memory()) is not None
