"""The wall clock of a node is set while the agent works: every limit and every pause is of real time all the same."""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import (
    PRE_RECREATE_GRACE,
    RECREATE_REQUEST,
    ExecAction,
    PreStop,
)
from flotilla_common.api.meta import Condition
from tests.support.node_scene import Scene, play
from tests.support.pull_scene import begun, entry, ready, tag, want

HOOK = PreStop(exec=ExecAction(command=["quit"]))
HOOK_SECONDS = 2.0
LOOK = 3.0
"""Seconds between two looks of the agent, at most."""

JUMPS = pytest.mark.parametrize("jump", [-3600.0, 3600.0], ids=["an hour back", "an hour forward"])


async def running(scene: Scene) -> None:
    scene.machine.start("p", "app")
    scene.machine.hook_takes = HOOK_SECONDS
    scene.start()
    await scene.at(3)


@JUMPS
def test_in_a_pull_with_limits(tmp_path: Path, jump: float) -> None:
    """The deadline comes neither sooner nor later."""

    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 60
        await ready(scene)
        want(scene, tag(timeout_seconds=5, active_deadline_seconds=8))
        await scene.until(lambda: len(begun(scene)) == 1)
        scene.clock.skew = jump
        done = await scene.until(lambda: entry(scene).phase == "Failed")
        assert entry(scene).message == "pulling exceeds the activeDeadlineSeconds"
        first, second = begun(scene)
        assert round(second - first) == 6
        assert done - first < 13

    play(tmp_path, story)


@pytest.mark.parametrize(("jump", "lasted"), [(-7200.0, 20), (3600.0, 3620)], ids=["back", "forward"])
def test_a_pull_never_ends_before_it_began(tmp_path: Path, jump: float, lasted: float) -> None:
    """With a clock that was set back, the end is computed from the duration."""

    async def story(scene: Scene) -> None:
        scene.machine.pull_takes = 20
        await ready(scene)
        want(scene, tag())
        await scene.until(lambda: entry(scene).phase == "Pulling")
        scene.clock.skew = jump
        await scene.until(lambda: entry(scene).phase == "Succeeded")
        done = entry(scene)
        assert done.start_time is not None
        assert done.completion_time is not None
        assert (done.completion_time - done.start_time).total_seconds() == pytest.approx(lasted, abs=1)

    play(tmp_path, story)


@JUMPS
@pytest.mark.parametrize("moment", [0.5, 2.1, 2.5, 3.05, 6.0])
def test_in_a_restart(tmp_path: Path, jump: float, moment: float) -> None:
    """Even just before the new container is seen for the first time: it did not run yet at the look before."""

    async def story(scene: Scene) -> None:
        await running(scene)
        scene.recreate("r", "p", "app", hook=HOOK, min_started_seconds=10)
        start = scene.loop.time()
        await scene.at(start + moment)
        scene.clock.skew = jump
        done = await scene.until(lambda: scene.completed("r"))
        ran = done - (scene.machine.started["p-app-1"] - scene.machine.started["p-app-0"])
        assert ran > (10 if jump < 0 else 10 - LOOK)
        assert done - start < 30
        assert scene.stopped() == ["p-app-0"]

    play(tmp_path, story)


@JUMPS
@pytest.mark.parametrize("moment", [-1.0, 0.0, 0.005, 4.0])
def test_in_the_grace_before_a_stop(tmp_path: Path, jump: float, moment: float) -> None:
    """The manager gives the start by its own clock; the agent has recorded that it had not started before."""

    async def story(scene: Scene) -> None:
        await running(scene)
        scene.recreate("r", "p", "app", unready_grace_period_seconds=8)
        await scene.until(lambda: scene.hub.request("r").status.phase == "Recreating")
        begin = scene.loop.time() + 1.5
        scene.loop.call_at(begin + moment, setattr, scene.clock, "skew", jump, context=scene.machine.outside)
        since = scene.clock.now() + timedelta(seconds=1.5)
        await scene.at(begin)
        grace_begins(scene, since)
        await scene.until(lambda: bool(scene.machine.stops))
        [(stopped, _, _)] = scene.machine.stops
        assert 8 - LOOK <= stopped - begin < 9, "at most as much too early as the agent takes between two looks"

    play(tmp_path, story)


def grace_begins(scene: Scene, since: datetime) -> None:
    """Write the start of the grace period, as the manager does."""
    request = scene.hub.request("r")
    began = Condition(type=PRE_RECREATE_GRACE, status="True", last_transition_time=since)
    status = msgspec.structs.replace(request.status, conditions=[began])
    scene.hub.put(RECREATE_REQUEST, msgspec.structs.replace(request, status=status))


@JUMPS
def test_in_a_hook_that_the_runtime_interrupts(tmp_path: Path, jump: float) -> None:
    """The container is stopped when the runtime is back, with what is left of the grace by real time."""

    async def story(scene: Scene) -> None:
        await running(scene)
        scene.recreate("r", "p", "app", hook=HOOK, termination_grace_period_seconds=30)
        await scene.until(lambda: bool(scene.machine.hooks))
        scene.clock.skew = jump
        scene.machine.up = False
        await scene.at(scene.loop.time() + 5)
        scene.machine.up = True
        await scene.until(lambda: scene.completed("r"))
        [(_, _, grace)] = scene.machine.stops
        assert 15 <= grace <= 25

    play(tmp_path, story)
