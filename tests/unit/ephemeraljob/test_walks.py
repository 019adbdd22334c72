"""Random walks on a small cluster with users, kubelets and delayed events.

A job injects its containers into each pod once, only into pods that match, never into more than it may at a time, and
ends.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.kinds.ephemeraljob.types import FAILED
from flotilla_common.api.resources import POD
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot
from flotilla_jobs.ephemeraljob.targets import TargetPods, parallelism_of
from tests.testkit.documents import Json
from tests.unit.ephemeraljob.world import BROKEN, DONE, RUNS, STATES, World, container, owned_by

NAMES = ("a", "b")
Step = Callable[[World], None]


def on_pod(act: Callable[[World, str], None]) -> st.SearchStrategy[Step]:
    """Return a step on one of the pods, if there is one of that number."""
    return st.integers(1, 6).map(lambda number: lambda world: act(world, f"p{number}"))


def kubelet(states: tuple[str, ...]) -> st.SearchStrategy[Step]:
    """Report the state of a container as its kubelet, unless it has ended."""
    return st.tuples(st.integers(1, 6), st.sampled_from(NAMES), st.sampled_from(states)).map(
        lambda one: lambda world: _tell(world, f"p{one[0]}", one[1], one[2])
    )


def _tell(world: World, pod: str, name: str, state: str) -> None:
    held = world.pods.get(pod)
    if held is None or name not in owned_by(held, "uid-j"):
        return
    told = held["status"].get("ephemeralContainerStatuses", [])
    if not any(one["name"] == name and one["state"] in (STATES[DONE], STATES[BROKEN]) for one in told):
        world.kubelet(pod, state=state, name=name)


def _come_or_go(world: World, pod: str) -> None:
    if pod in world.pods:
        world.vanish(POD, pod)
    else:
        world.pod(pod, age=int(pod[1:]))


def _relabel(world: World, pod: str) -> None:
    if pod in world.pods:
        matches = world.pods[pod]["metadata"]["labels"]["app"] == "web"
        world.edit_pod(pod, {"metadata": {"labels": {"app": "db" if matches else "web"}}})


def _finish(world: World, pod: str) -> None:
    if pod in world.pods:
        world.edit_pod(pod, {"status": {"phase": "Failed"}})


def _foreign(world: World, pod: str) -> None:
    """Let another client take a name of the template."""
    if pod in world.pods and not world.pods[pod]["spec"]["ephemeralContainers"]:
        world.edit_pod(pod, {"spec": {"ephemeralContainers": [container("a", image="mine")]}})


def _lag(world: World, pod: str) -> None:
    world.lagging.add(pod)


def _busy(pod: Json) -> bool:
    """Report whether the pod has containers of the job, none failed, and not all ended."""
    told = [one["state"] for one in pod["status"].get("ephemeralContainerStatuses", [])]
    over = any(one in (STATES[BROKEN], STATES["no command"]) for one in told) or told.count(STATES[DONE]) == len(NAMES)
    return bool(owned_by(pod, "uid-j")) and not over


def _changed(**spec: Any) -> Step:
    return lambda world: world.change(**spec)


STEPS = st.one_of(
    kubelet(tuple(STATES)),
    kubelet((RUNS, DONE)),
    on_pod(_come_or_go),
    on_pod(_relabel),
    on_pod(_finish),
    on_pod(_foreign),
    on_pod(_lag),
    st.just(World.catch_up),
    st.sampled_from([None, 0, 2, 5]).map(lambda value: _changed(parallelism=value)),
    st.sampled_from([None, 1, 3, 9]).map(lambda value: _changed(replicas=value)),
    st.booleans().map(lambda value: _changed(paused=value)),
)


def seen(world: World) -> tuple[EphemeralJobSnapshot, TargetPods]:
    """Return the controller's present view."""
    snapshot = world.snapshot()
    assert snapshot is not None
    return snapshot, TargetPods.of(snapshot.job, snapshot.pods)


def passed(world: World) -> None:
    """Run one pass, and check its invariants."""
    before = set(world.injected())
    world.reconcile()
    new = set(world.injected()) - before
    snapshot, targets = seen(world)
    for name in new:
        pod = world.pods[name]
        assert (pod["metadata"]["labels"]["app"], pod["status"]["phase"]) == ("web", "Running")
        assert not snapshot.job.spec.paused
    if new:
        chosen = [target.pod.metadata.name for target in targets.chosen]
        assert sum(_busy(world.pods[name]) for name in chosen if name not in world.lagging) <= parallelism_of(
            snapshot.job
        )
        assert len(chosen) <= (snapshot.job.spec.replicas or len(chosen))
    for name, pod in world.pods.items():
        assert owned_by(pod, "uid-j") in ([], ["a", "b"]), name
        held = [one["name"] for one in pod["spec"]["ephemeralContainers"]]
        assert len(held) == len(set(held)), name


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_walks(steps: list[Step]):
    world = World(4, parallelism=2, containers=[container(name) for name in NAMES])
    for step in steps:
        step(world)
        passed(world)
    end(world)


def end(world: World) -> None:
    """Let everything settle, including the job: with all pods done, or at its deadline."""
    world.catch_up()
    world.change(paused=False, parallelism=1, replicas=None)
    for _ in range(8):
        world.settle()
        for pod in world.pods:
            for name in NAMES:
                _tell(world, pod, name, DONE)
    world.settle()
    if world.status().completion_time is not None:
        return
    _, targets = seen(world)
    assert not targets.open
    assert not targets.at_work
    assert not targets.chosen or targets.of_state(FAILED)
    world.change(activeDeadlineSeconds=1)
    world.later(2)
    assert world.status().phase == "Failed"
