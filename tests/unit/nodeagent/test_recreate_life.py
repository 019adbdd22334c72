"""ContainerRecreateRequests from the agent's first sight to their end (containerrecreaterequest.md §12)."""

from pathlib import Path

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    RECREATE_REQUEST,
    ExecAction,
    PreStop,
    StatusContext,
)
from flotilla_nodeagent.cri.errors import CriError
from tests.support.node_scene import Scene, play

HOOK = PreStop(exec=ExecAction(command=["quit"]))


def two_containers(scene: Scene) -> None:
    scene.machine.start("p", "app")
    scene.machine.start("p", "side")


async def settle(scene: Scene, seconds: float = 5.0) -> None:
    """Begin: pod and agent are there for a while."""
    two_containers(scene)
    scene.start()
    start = scene.loop.time()
    await scene.at(start + seconds)


def test_one_container(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.recreate("r", "p", "app")
        await scene.until(lambda: scene.completed("r"))
        assert scene.states("r") == [("app", "Succeeded", True)]
        assert scene.hub.request("r").status.message == ""
        assert scene.stopped() == ["p-app-0"]
        first = scene.hub.said("containerrecreaterequests")[:2]
        assert (first[0].phase, first[0].states) == ("Recreating", None)
        assert [state.phase for state in first[1].states] == ["Pending"]  # before anything is touched
        await scene.until(lambda: bool(scene.hub.events))
        [event] = scene.hub.events
        assert event.message == "Stopping container app by ContainerRecreateRequest r"
        assert (event.reason, event.field_path) == ("Killing", "spec.containers{app}")

    play(tmp_path, story)


def test_two_containers_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.recreate("r", "p", "app", "side")
        await scene.until(lambda: scene.completed("r"))
        (first, _, _), (second, _, _) = scene.machine.stops
        assert second - first < 1
        assert scene.states("r") == [("app", "Succeeded", True), ("side", "Succeeded", True)]

    play(tmp_path, story)


def test_in_order(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.recreate("r", "p", "app", "side", ordered_recreate=True)
        await scene.until(lambda: len(scene.machine.stops) == 2)
        assert scene.states("r")[0] == ("app", "Succeeded", True)
        await scene.until(lambda: scene.completed("r"))

    play(tmp_path, story)


def test_min_started_seconds(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.recreate("r", "p", "app", min_started_seconds=8)
        done = await scene.until(lambda: scene.completed("r"))
        started = scene.machine.started["p-app-1"] - scene.machine.started["p-app-0"]
        assert 8 < done - started < 10

    play(tmp_path, story)


@pytest.mark.parametrize(("forced", "stops"), [(False, []), (True, ["p-app-1"])], ids=["not again", "forced"])
def test_restarted_by_somebody_else_in_between(tmp_path: Path, forced: bool, stops: list[str]) -> None:
    async def story(scene: Scene) -> None:
        two_containers(scene)
        scene.recreate("r", "p", "app", force_recreate=forced)
        scene.machine.exit("p-app-0")
        await scene.until(lambda: scene.machine.newest("p", "app").id == "p-app-1")
        scene.start()
        await scene.until(lambda: scene.hub.request("r").status.phase == "Recreating")
        scene.hub.snapshot("r", "app", "containerd://p-app-1")
        await scene.until(lambda: scene.completed("r"))
        assert scene.stopped() == stops
        assert scene.states("r") == [("app", "Succeeded", True)]

    play(tmp_path, story)


def test_an_exited_container_is_not_stopped_even_if_forced(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.machine.restarts = False
        scene.machine.exit("p-app-0")
        scene.recreate("r", "p", "app", force_recreate=True)
        await scene.until(lambda: scene.states("r") == [("app", "Recreating", True)])
        scene.machine.start("p", "app")
        await scene.until(lambda: scene.completed("r"))
        assert scene.stopped() == []

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("takes", "grace", "done", "left"),
    [(3.0, 30, True, 27), (20.0, 5, False, 2), (0.0, 0, None, 2), (29.5, 30, True, 2)],
    ids=["hook within the grace", "hook abandoned", "no grace, no hook", "hook leaves little"],
)
def test_hook_and_grace(tmp_path: Path, takes: float, grace: int, done: bool | None, left: int) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.machine.hook_takes = takes
        scene.recreate("r", "p", "app", hook=HOOK, termination_grace_period_seconds=grace)
        await scene.until(lambda: scene.completed("r"))
        [(_, _, given)] = scene.machine.stops
        assert given == left
        if done is None:
            assert scene.machine.hooks == []
        elif not done:
            stopped_at = scene.machine.stops[0][0]
            assert all(at > stopped_at for at, _, what in scene.machine.hooks if what == "done")
            assert [event.reason for event in scene.hub.events] == ["Killing", "FailedPreStopHook"]

    play(tmp_path, story)


def test_a_failed_hook_is_told_and_ignored(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.recreate("r", "p", "app", hook=PreStop(exec=ExecAction(command=["false"])))
        await scene.until(lambda: scene.completed("r"))
        assert [event.reason for event in scene.hub.events] == ["Killing", "FailedPreStopHook"]
        assert "it failed" in scene.hub.events[1].message
        assert scene.states("r") == [("app", "Succeeded", True)]

    play(tmp_path, story)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_stop_that_fails(tmp_path: Path, policy: str) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.machine.stop_fails["app"] = CriError("cannot stop")
        scene.recreate("r", "p", "app", "side", failure_policy=policy)
        await scene.until(lambda: scene.completed("r"))
        states = scene.hub.request("r").status.container_recreate_states
        assert (states[0].phase, states[0].message) == ("Failed", "kill container error: cannot stop")
        assert states[1].phase == ("Pending" if policy == "Fail" else "Succeeded")

    play(tmp_path, story)


def test_a_second_request_waits_for_the_first(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.machine.hook_takes = 5.0
        scene.recreate("one", "p", "app", hook=HOOK)
        scene.recreate("two", "p", "side")
        await scene.until(lambda: scene.hub.request("two").status.phase == "Pending")
        await scene.until(lambda: scene.completed("two"))
        assert scene.completed("one")
        assert scene.stopped() == ["p-app-0", "p-side-0"]

    play(tmp_path, story)


def test_containers_of_two_runtimes(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.recreate("r", "p", "app", "side")
        request = scene.hub.request("r")
        app, side = request.spec.containers
        docker = StatusContext(container_id="docker://p-side-0")
        containers = [app, msgspec.structs.replace(side, status_context=docker)]
        spec = msgspec.structs.replace(request.spec, containers=containers)
        scene.hub.put(RECREATE_REQUEST, msgspec.structs.replace(request, spec=spec))
        await scene.until(lambda: scene.completed("r"))
        assert scene.hub.request("r").status.message.startswith("failed to find runtime service")

    play(tmp_path, story)


def test_a_kill_goes_on_when_the_request_is_completed_meanwhile(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await settle(scene)
        scene.machine.hook_takes = 20.0
        scene.recreate("r", "p", "app", "side", hook=HOOK, termination_grace_period_seconds=60)
        await scene.until(lambda: bool(scene.machine.hooks))
        request = scene.hub.request("r")
        status = msgspec.structs.replace(request.status, phase="Completed", message="deadline")
        scene.hub.put(RECREATE_REQUEST, msgspec.structs.replace(request, status=status))
        await scene.until(lambda: scene.states("r") == [("app", "Recreating", True), ("side", "Pending", False)])
        start = scene.loop.time()
        await scene.at(start + 30)
        assert scene.stopped() == ["p-app-0"]
        assert scene.hub.request("r").status.message == "deadline"

    play(tmp_path, story)
