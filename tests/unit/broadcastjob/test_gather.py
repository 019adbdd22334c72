"""Ownership of a job's pods, and the keys that a change wakes (broadcastjob.md §4.1)."""

from typing import Any, TypeVar

import msgspec
import pytest

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.control.keystate import Memory
from flotilla_jobs.broadcastjob.controller import CONTROLLER, JOBS, NODES, PODS
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot, Options
from tests.support.controller_context import FakeContext
from tests.unit.broadcastjob.build import job, node, nodes, pods, running

KEY = ("default", "j")


class Bench:
    """A gatherer over tables."""

    def __init__(self, *jobs: BroadcastJob) -> None:
        self.context = FakeContext()
        self.gatherer = self.context.build(CONTROLLER, Options())
        self.context.put(JOBS, *(jobs or (job(status=running()),)))
        self.context.put(NODES, *nodes(2))

    def gather(self) -> BroadcastJobSnapshot:
        found = self.gatherer.gather(KEY, Memory(failures={"create": "no"}, notes={"a": "b"}))
        assert found is not None
        return found


T = TypeVar("T", Node, Pod)


def changed(obj: T, **metadata: Any) -> T:
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, **metadata))


def test_a_job_and_its_surroundings() -> None:
    bench = Bench()
    mine, foreign, unlabelled, other = pods("1R 2R 3R 4R")
    strange = [msgspec.structs.replace(owner, uid="uid-old") for owner in foreign.metadata.owner_references]
    bench.context.put(
        PODS,
        mine,
        changed(foreign, owner_references=strange),
        changed(unlabelled, labels={"broadcastjob-name": "j"}),
        changed(other, namespace="elsewhere"),
    )
    found = bench.gather()
    assert [pod.metadata.name for pod in found.pods] == ["j-1"]
    assert len(found.nodes) == 2
    assert "j-2" in found.taken_names
    assert (found.failures, found.notes) == ({"create": "no"}, {"a": "b"})
    assert found.subject.key == "default/j"
    assert bench.gatherer.gather(("default", "gone"), Memory()) is None


def test_the_name_of_a_pod_that_is_gone_is_remembered_as_long_as_the_job() -> None:
    bench = Bench()
    (pod,) = pods("1P")
    bench.context.put(PODS, pod)
    bench.context.table(PODS).remove("default", "j-1")
    assert bench.gather().former_names == {"n1": "j-1"}
    bench.context.table(JOBS).remove(*KEY)
    assert bench.gatherer._former_names._known == {}


def test_pods_of_others_are_not_remembered() -> None:
    bench = Bench(job(meta={"uid": "uid-new"}))
    bench.context.put(PODS, *pods("1R"))
    bench.context.table(PODS).remove("default", "j-1")
    assert bench.gatherer._former_names._known == {}


@pytest.mark.parametrize(
    ("new", "woken"),
    [
        pytest.param(node("n1"), [], id="a heartbeat"),
        pytest.param(node("n1", cordoned=True), [KEY], id="cordoned"),
        pytest.param(node("n1", taints=[{"key": "x", "effect": "NoExecute"}]), [KEY], id="tainted"),
        pytest.param(node("n1", cpu="1"), [KEY], id="smaller"),
        pytest.param(None, [KEY], id="gone"),
    ],
)
def test_nodes_wake_jobs_that_have_not_ended(new: Node | None, woken: list[tuple[str, str]]) -> None:
    verdict = {"conditions": [{"type": "Complete", "status": "True"}]}
    bench = Bench(job(status=running()), job(meta={"name": "ended", "uid": "uid-e"}, status=verdict))
    bench.context.woken.clear()
    if new is None:
        bench.context.table(NODES).remove("", "n1")
    else:
        bench.context.put(NODES, changed(new, resource_version="9"))
    assert bench.context.woken == woken


def test_a_node_that_joins_wakes_them() -> None:
    bench = Bench()
    bench.context.woken.clear()
    bench.context.put(NODES, node("n9"))
    assert bench.context.woken == [KEY]
