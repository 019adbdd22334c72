"""Faults while containers are restarted: nothing is lost, and nothing is done twice."""

from pathlib import Path

import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import ExecAction, PreStop
from tests.support.node_scene import Scene, play

HOOK = PreStop(exec=ExecAction(command=["quit"]))
HOOK_SECONDS = 2.0

MOMENTS = [round(0.11 * step, 2) for step in range(1, 64)]
"""Moments from before the agent receives the request until after it is done."""


async def running(scene: Scene) -> None:
    scene.machine.start("p", "app")
    scene.machine.start("p", "side")
    scene.machine.hook_takes = HOOK_SECONDS
    scene.start()
    await scene.at(3)


@pytest.mark.parametrize("forced", [False, True], ids=["once", "forced"])
def test_killed_at_any_moment(tmp_path: Path, forced: bool) -> None:
    """kill -9 and a restart two seconds later, at every ninth of a second of a request's life."""
    for moment in MOMENTS:

        async def story(scene: Scene, moment: float = moment) -> None:
            await running(scene)
            scene.recreate("r", "p", "app", "side", hook=HOOK, force_recreate=forced)
            start = scene.loop.time()
            await scene.at(start + moment)
            killed_at = scene.loop.time()
            scene.kill()
            await scene.at(start + moment + 2)
            scene.start()
            await scene.until(lambda: scene.completed("r"))
            await scene.at(scene.loop.time() + 1)
            assert scene.states("r") == [("app", "Succeeded", True), ("side", "Succeeded", True)]
            for name in ("app", "side"):
                assert set(scene.stopped(f"p-{name}")) == {f"p-{name}-0"}, "another instance was stopped"
                assert scene.machine.newest("p", name).id == f"p-{name}-1"
                check_hook(scene, f"p-{name}-0", killed_at)
            assert not list((tmp_path / str(moment) / "recreate").glob("*.json")), "the journal is left behind"

        play(tmp_path / str(moment), story)


def check_hook(scene: Scene, container: str, killed_at: float) -> None:
    """Check that the hook ran to its end once, or was restarted after an interruption with its remaining time."""
    began = [at for at, one, what in scene.machine.hooks if (one, what) == (container, "begun")]
    done = [at for at, one, what in scene.machine.hooks if (one, what) == (container, "done")]
    assert len(done) == 1
    interrupted = any(at <= killed_at <= at + HOOK_SECONDS + 0.01 for at in began)
    assert len(began) <= (2 if interrupted else 1)


def test_the_bus_is_away_for_a_minute(tmp_path: Path) -> None:
    for moment in (0.0, 0.03, 0.3, 1.0, 2.0, 2.2, 3.0, 4.0):

        async def story(scene: Scene, moment: float = moment) -> None:
            await running(scene)
            scene.recreate("r", "p", "app", "side", hook=HOOK)
            start = scene.loop.time()
            await scene.at(start + moment)
            scene.hub.up = False
            await scene.at(start + moment + 60)
            scene.hub.up = True
            await scene.until(lambda: scene.completed("r"))
            assert sorted(scene.stopped()) == ["p-app-0", "p-side-0"]
            assert [what for _, _, what in scene.machine.hooks].count("done") == 2

        play(tmp_path / str(moment), story)


def test_answers_are_lost(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await running(scene)
        scene.hub.lose_answers = 5
        scene.recreate("r", "p", "app", "side")
        await scene.until(lambda: scene.completed("r"), within=600)
        assert sorted(scene.stopped()) == ["p-app-0", "p-side-0"]

    play(tmp_path, story)


def test_the_runtime_restarts_at_any_moment(tmp_path: Path) -> None:
    for moment in MOMENTS[::3]:

        async def story(scene: Scene, moment: float = moment) -> None:
            await running(scene)
            scene.recreate("r", "p", "app", hook=HOOK)
            start = scene.loop.time()
            await scene.at(start + moment)
            scene.machine.up = False
            await scene.at(start + moment + 3)
            scene.machine.up = True
            await scene.until(lambda: scene.completed("r"))
            assert set(scene.stopped()) == {"p-app-0"}
            assert scene.states("r") == [("app", "Succeeded", True)]

        play(tmp_path / str(moment), story)


def test_fifty_requests_at_once(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        names = [f"p{number}" for number in range(50)]
        for name in names:
            scene.machine.start(name, "app")
        scene.machine.hook_takes = 5.0
        scene.start()
        await scene.at(3)
        start = scene.loop.time()
        for name in names:
            scene.recreate(f"r-{name}", name, "app", hook=HOOK)
        await scene.until(lambda: all(scene.completed(f"r-{name}") for name in names))
        assert scene.loop.time() - start < 15, "one pod's hook held another pod up"
        assert len(scene.machine.stops) == 50

    play(tmp_path, story)


def test_the_bus_forgets_everything(tmp_path: Path) -> None:
    async def story(scene: Scene) -> None:
        await running(scene)
        scene.recreate("r", "p", "app", hook=HOOK)
        await scene.until(lambda: bool(scene.machine.hooks))
        scene.hub.wipe()
        await scene.until(lambda: scene.completed("r"))
        assert scene.stopped() == ["p-app-0"]

    play(tmp_path, story)
