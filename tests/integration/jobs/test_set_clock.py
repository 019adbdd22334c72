"""The clock of the jobs service is set while image pulls and schedules wait, and days of clock changes.

(imagepull.md §5, advancedcronjob.md §4.3 and §4.4.)
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.resources import JOB
from flotilla_common.clock import SystemClock
from tests.integration.jobs.conftest import PullSpace, Running
from tests.integration.jobs.test_image_jobs import job
from tests.support import set_clock
from tests.support.cluster import eventually
from tests.support.cron import NAME, cronjob, due, ever, jobs, runs
from tests.support.fake_agents import HANG
from tests.support.workspace import Workspace, moment, watched

HOUR = timedelta(hours=1)
JUST_BEFORE = timedelta(seconds=3)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clock(running: Running) -> AsyncIterator[Path]:
    """Start the jobs service again, with a clock that this file sets."""
    file = running.cluster.plane.places.state_dir / "jobs.clock"
    running.fleet.kill("jobs")
    await running.fleet.start("jobs", program=set_clock.command(file, "flotilla_cli"))
    yield file
    running.fleet.kill("jobs")


async def test_image_pulls_while_the_clock_is_set(space: PullSpace, clock: Path):
    """Deadlines and TTLs depend on that clock, as in Kubernetes' own controllers.

    An hour forward ends what had half an hour left. Nothing else ends, nothing is pulled twice, and when the clock is
    set back, work continues.
    """
    node = space.nodes[0]
    plenty, never = {"type": "Always", "activeDeadlineSeconds": 1800}, {"type": "Always"}
    kept = never | {"ttlSecondsAfterFinished": 1800}
    for name, policy in (("limited", plenty), ("patient", never)):
        space.agents.answers[node, f"clock:{name}"] = HANG
        space.apply(job(f"clock:{name}", name, selector={"names": [node]}, completionPolicy=policy))
        await asyncio.to_thread(space.done, name, active=1)
    space.apply(job("clock:kept", "kept", selector={"names": [node]}, completionPolicy=kept))
    await asyncio.to_thread(space.done, "kept", succeeded=1, message="job has completed")
    set_clock.put(clock, 3600)
    for name in ("limited", "patient", "kept"):
        await asyncio.to_thread(touch, space, name)
    await asyncio.to_thread(space.done, "limited", failed=1, failedNodes=[node], active=0)
    await eventually(lambda: not space.seen("ImagePullJob", "kept"))
    set_clock.put(clock, -3600)
    del space.agents.answers[node, "clock:patient"]
    await asyncio.to_thread(space.done, "patient", succeeded=1, message="job has completed")
    for name in ("limited", "patient"):
        assert space.job(name)["startTime"] <= space.job(name)["completionTime"]
    pulls = sorted(pull for pull in space.agents.pulls if pull[1].startswith("clock:"))
    assert pulls == [(node, f"clock:{name}", 0) for name in ("kept", "limited", "patient")]


def touch(space: PullSpace, job: str) -> None:
    """Have it looked at, if it is still there."""
    space.cluster.kubectl("-n", space.name, "annotate", "imagepulljob", job, "look=again", check=False)


class Scene(NamedTuple):
    """A namespace for schedules, and the clock of the jobs service."""

    space: Workspace
    clock: Path

    def set(self, time: datetime) -> None:
        """Set the service's clock to this time."""
        set_clock.put(self.clock, (time - SystemClock().now()).total_seconds())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait in a thread: the record is written meanwhile."""
        await asyncio.to_thread(self.space.until, holds)


@pytest.fixture
def scene(running: Running, clock: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    with watched(running.cluster, request.node.nodeid, ADVANCED_CRON_JOB, JOB) as space:
        set_clock.put(clock, 0)
        yield Scene(space, clock)


async def test_a_schedule_while_the_clock_is_set(scene: Scene) -> None:
    """Forward: what is due then starts at once. Back: nothing is started a second time."""
    run = SystemClock().now().replace(second=0, microsecond=0) + HOUR / 2
    scene.space.apply(cronjob(jobs(), f"{run.minute} * * * *"))
    await scene.until(lambda: scene.space.clone(NAME).get("status", {}).get("type") == "Job")
    scene.set(run - JUST_BEFORE)
    await scene.until(lambda: run_times(scene) == [run])
    scene.set(run - JUST_BEFORE)
    scene.space.apply(cronjob(jobs(), f"{run.minute} * * * *", name="beside"))
    await scene.until(lambda: run_times(scene, "beside") == [run])
    scene.set(run + HOUR - JUST_BEFORE)
    await scene.until(lambda: run_times(scene) == [run, run + HOUR])
    assert len(ever(scene.space)) == len({*ever(scene.space)})
    await scene.until(lambda: moment(scene.space.clone(NAME)["status"]["lastScheduleTime"]) == run + HOUR)


async def test_days_on_which_clocks_are_changed(scene: Scene) -> None:
    """In Berlin 02:30 does not exist on 28 March 2027, and occurs twice on 31 October."""
    berlin = {"timeZone": "Europe/Berlin", "startingDeadlineSeconds": 60}
    scene.set(datetime(2027, 3, 28, 0, 59, 57, tzinfo=UTC))
    scene.space.apply(cronjob(jobs(), "30 2 * * *", **berlin))
    scene.space.apply(cronjob(jobs(), "30 3 * * *", name="beside", **berlin))
    scene.set(datetime(2027, 3, 28, 1, 29, 57, tzinfo=UTC))
    skipped = datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    await scene.until(lambda: run_times(scene, "beside") == [skipped])
    assert run_times(scene) == []
    once, again = (datetime(2027, 10, 31, hour, 30, tzinfo=UTC) for hour in (0, 1))
    scene.set(once - JUST_BEFORE)
    await scene.until(lambda: run_times(scene) == [once])
    scene.set(again - JUST_BEFORE)
    await scene.until(lambda: run_times(scene) == [once, again])


def run_times(scene: Scene, name: str = NAME) -> list[datetime]:
    """Return when the existing runs were due."""
    return [due(run) for run in runs(scene.space, name=name).values()]
