"""A clock that is set while schedules wait, and days of clock changes (advancedcronjob.md §4.3, §4.4).

The jobs service runs on a control plane of its own, with a wall clock that the test sets.
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
from tests.support import set_clock
from tests.support.cluster import Cluster, control_plane
from tests.support.cron import NAME, cronjob, due, ever, jobs, runs
from tests.support.fleet import fleet
from tests.support.workspace import Workspace, moment, watched

HOUR = timedelta(hours=1)
JUST_BEFORE = timedelta(seconds=3)

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Scene(NamedTuple):
    """A namespace, and the clock of its jobs service."""

    space: Workspace
    clock: Path

    def set(self, time: datetime) -> None:
        """Set the service's clock to this time."""
        set_clock.put(self.clock, (time - SystemClock().now()).total_seconds())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait in a thread: the record is written meanwhile."""
        await asyncio.to_thread(self.space.until, holds)


class Site(NamedTuple):
    """A cluster whose jobs service has a clock of the test's."""

    cluster: Cluster
    clock: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("plane")
    async with control_plane(folder) as cluster, fleet(cluster, ("watcher", "webhook")) as services:
        await services.start("jobs", program=set_clock.command(folder / "clock", "flotilla_cli"))
        yield Site(cluster, folder / "clock")


@pytest.fixture
def scene(site: Site, request: pytest.FixtureRequest) -> Iterator[Scene]:
    with watched(site.cluster, request.node.nodeid, ADVANCED_CRON_JOB, JOB) as space:
        yield Scene(space, site.clock)


async def test_a_clock_that_is_set(scene: Scene) -> None:
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
