"""Changes that wake jobs: those of pods that they selected or select, in the fields that they read, and no others."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.ephemeraljob.types import EphemeralJob
from flotilla_common.api.resources import POD
from flotilla_common.control.keystate import Memory
from flotilla_jobs.ephemeraljob.controller import JOBS, PODS, is_chosen
from tests.testkit.documents import Json
from tests.unit.ephemeraljob.world import RUNS, STATES, World, marked

OTHER = {"matchLabels": {"app": "db"}}
BROKEN: Json = {"matchExpressions": [{"key": "a", "operator": "Is"}]}


@pytest.fixture
def world() -> World:
    """Return a world with pod p1 of the web, and jobs for different pods and in different states.

    The jobs are for the web, for all pods, for db; one is completed, one is being deleted, one cannot be decoded, and
    one is in another namespace, where there is a pod, too.
    """
    world = World(pods=1)
    world.job("all", selector={})
    world.job("db", selector=OTHER)
    world.job("over")
    world.change("over", status={"completionTime": "2026-01-01T00:00:00Z"})
    world.job("leaving")
    world.change("leaving", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    world.job("unreadable", selector=BROKEN)
    elsewhere = {"metadata": {"namespace": "other", "uid": "uid-other"}}
    world.context.put(JOBS, msgspec.convert(merge(world.jobs["j"], elsewhere), EphemeralJob))
    world.context.put(PODS, msgspec.convert(merge(world.pods["p1"], elsewhere), Pod))
    return world


def woken(world: World) -> set[str]:
    assert {namespace for namespace, _ in world.context.woken} <= {"ns"}
    return {name for _, name in world.context.woken}


NOBODY: set[str] = set()
RUNNING = {"name": "dbg", "state": STATES[RUNS]}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"status": {"phase": "Failed"}}, {"j", "all"}, id="phase"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {"j", "all"}, id="it is deleted"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, {"j", "all"}, id="labels"),
        pytest.param({"metadata": {"labels": {"app": "db"}}}, {"j", "all", "db"}, id="matches another selector"),
        pytest.param({"spec": {"ephemeralContainers": [marked()]}}, {"j", "all"}, id="a container"),
        pytest.param({"status": {"ephemeralContainerStatuses": [RUNNING]}}, {"j", "all"}, id="how a container is"),
        pytest.param({"status": {"podIP": "1.2.3.4"}}, NOBODY, id="its address"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, NOBODY, id="annotations"),
        pytest.param({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, NOBODY, id="readiness"),
    ],
)
def test_changes_of_a_pod(world: World, patch: Json, expected: set[str]):
    world.context.woken.clear()
    world.edit_pod("p1", patch)
    assert woken(world) == expected


@pytest.mark.parametrize(("app", "expected"), [("web", {"j", "all"}), ("x", {"all"}), ("db", {"db", "all"})])
def test_pods_that_come_and_go(world: World, app: str, expected: set[str]):
    world.context.woken.clear()
    world.pod("new", app=app)
    assert woken(world) == expected
    world.context.woken.clear()
    world.vanish(POD, "new")
    assert woken(world) == expected


def test_a_pod_of_that_name_in_its_place(world: World):
    world.context.woken.clear()
    world.pod("p1", app="db")
    assert woken(world) == {"j", "all", "db"}


def gathered(world: World, name: str) -> list[str]:
    snapshot = world.gatherer.gather(("ns", name), Memory(failures={"inject": "no"}))
    assert snapshot is not None
    assert snapshot.failures == {"inject": "no"}
    assert snapshot.subject.name == name
    assert bool(snapshot.problem) == (name == "unreadable")
    return [pod.metadata.name for pod in snapshot.pods]


@pytest.mark.parametrize(("name", "found"), [("j", ["p1"]), ("all", ["p1", "p2"]), ("db", []), ("unreadable", [])])
def test_what_is_gathered(world: World, name: str, found: list[str]):
    world.pod("p2", app="x")
    assert gathered(world, name) == found


def test_a_job_that_is_gone(world: World):
    assert world.gatherer.gather(("ns", "gone"), Memory()) is None


@pytest.mark.parametrize(
    ("selector", "pod", "expected"),
    [
        pytest.param({"matchLabels": {"app": "web"}}, {}, True, id="matches"),
        pytest.param({}, {}, True, id="everything matches"),
        pytest.param(OTHER, {}, False, id="does not match"),
        pytest.param(BROKEN, {}, False, id="cannot be read"),
        pytest.param({"matchLabels": 5}, {}, False, id="no selector at all"),
        pytest.param({}, {"namespace": "other"}, False, id="another namespace"),
    ],
)
def test_what_recordings_keep(selector: Any, pod: Json, expected: bool):
    job: Json = {"metadata": {"namespace": "ns"}, "spec": {"selector": selector}}
    assert is_chosen(job, {"metadata": {"namespace": "ns", "labels": {"app": "web"}, **pod}}) == expected
