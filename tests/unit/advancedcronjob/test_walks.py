"""Random lives of AdvancedCronJobs: users, clocks, restarts and failures in any order.

No run is started twice, and none is missed without a reason.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule
from flotilla_common.control.plan import Create, Delete, Patch
from tests.unit.advancedcronjob.world import DENIED, OK, World, cron_job, unix

SCHEDULES = ("*/1 * * * *", "*/7 * * * *", "@every 90s", "0,30 10-12 * * *", "TZ=Asia/Kolkata */20 * * * *")
EXCUSES = {"ForbiddenByPolicy", "PausedByUser", "TooLate", "TooManyMissedTimes"}
"""Reasons for a run that is due and is not started."""

Step = Callable[[World], None]


def wait(seconds: float) -> Step:
    return lambda world: world.until(world.now + timedelta(seconds=seconds))


def down(seconds: float) -> Step:
    return lambda world: world.down_until(world.now + timedelta(seconds=seconds))


def edit(**spec: object) -> Step:
    return lambda world: world.change_spec(**spec)


def refuse(*kinds: type) -> Step:
    def step(world: World) -> None:
        world.verdict = lambda action: DENIED if isinstance(action, kinds) else OK

    return step


def end(how: str) -> Step:
    def step(world: World) -> None:
        for due in today(world)[:1]:
            world.end(due, how)

    return step


def today(world: World) -> list[str]:
    """Return when the existing children were due, without those of later days."""
    return [due for due in world.here if len(due) == len("10:01:00")]


def delete(world: World) -> None:
    """Delete a child whose run is in the status."""
    for due in [due for due in today(world) if due <= world.last_run][-1:]:
        world.delete(due)


def restart(world: World) -> None:
    world.restart()


def back(world: World) -> None:
    """Set the clock back."""
    world.set_clock(world.now - timedelta(seconds=150))
    world.passes()


STEPS = st.one_of(
    st.floats(0, 200).map(wait),
    st.sampled_from([30, 600, 9000]).map(down),
    st.booleans().map(lambda paused: edit(paused=paused)),
    st.sampled_from(["Allow", "Forbid", "Replace"]).map(lambda policy: edit(concurrencyPolicy=policy)),
    st.sampled_from([None, 20, 300]).map(lambda deadline: edit(startingDeadlineSeconds=deadline)),
    st.sampled_from(SCHEDULES).map(lambda schedule: edit(schedule=schedule)),
    st.sampled_from([(), (), (), (Patch,), (Create,), (Delete,), (Patch, Create, Delete)]).map(lambda no: refuse(*no)),
    st.sampled_from(["Complete", "Failed"]).map(end),
    st.sampled_from([delete, restart, back]),
)


@given(st.sampled_from(SCHEDULES), st.lists(STEPS, max_size=25))
@settings(max_examples=150, deadline=None)
def test_no_run_twice_and_none_missed_without_a_word(schedule: str, steps: Sequence[Step]):
    world, last = World(cron_job(schedule)), ""
    for step in steps:
        step(world)
        assert len(world.started) == len(set(world.started))
        assert world.status.get("lastScheduleTime", "") >= last, "it went back"
        last = world.status.get("lastScheduleTime", "")
    world.verdict = lambda action: OK
    wait(5)(world)
    assert due_and_not_started(world) == []


def due_and_not_started(world: World) -> list[str]:
    """Return the latest due run if it was not started and no reason explains it."""
    spec = world.job["spec"]
    if EXCUSES & set(world.codes) or spec["schedule"].startswith("@every"):
        return []
    since = max(unix("10:00:30"), *(int(name.rpartition("-")[2]) for name in world.started), 0)
    missed = Schedule.parse(spec["schedule"]).missed(datetime.fromtimestamp(since, UTC), world.now, 10)
    return [f"{run:%H:%M:%S}" for run in missed]
