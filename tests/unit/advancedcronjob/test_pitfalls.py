"""Pitfalls from the field, which must not recur (advancedcronjob.md §9).

Writes that fail, clocks that are set, restarts at the worst moment, and the number of writes per run.
"""

from collections.abc import Callable

import pytest

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.resources import JOB
from flotilla_common.control.plan import Action, Create, Delete, Outcome, OutcomeKind, Patch
from tests.unit.advancedcronjob.world import DENIED, OK, World, cron_job, stamp, unix


def fail(*kinds: type[Create | Patch | Delete]) -> Callable[[Action], Outcome]:
    """Return an apiserver that refuses these writes."""
    return lambda action: DENIED if isinstance(action, kinds) else OK


def test_a_run_that_nothing_disturbs_costs_three_writes():
    world = World()
    world.until("10:01:10")
    for active in (1, 2):  # the Job controller writes its status several times
        world.change("10:01", status={"active": active, "startTime": stamp("10:01")})
    world.end("10:01")
    world.until("10:01:50")
    assert world.log[1:] == [f"create a-{unix('10:01')}", "patch a", "patch a"]


def test_the_status_comes_first_and_nothing_is_done_without_it():
    world = World()
    world.until("10:01:00.5")
    world.verdict = fail(Patch)
    world.end("10:01")
    world.until("10:04:30")
    assert world.runs == ["10:01:00"]
    world.verdict = fail()
    world.until("10:04:40")
    assert world.runs == ["10:01:00", "10:04:00"]


def test_a_run_whose_child_is_gone_before_the_status_could_be_written():
    world = World()
    world.until("10:01:10")
    world.verdict = fail(Patch)
    world.until("10:02:05")
    assert world.runs == ["10:01:00", "10:02:00"]
    world.delete("10:02")
    world.until("10:02:20")
    world.verdict = fail()
    world.until("10:02:30")
    assert world.runs == ["10:01:00", "10:02:00"]
    assert world.last_run == "10:02:00"


def test_a_create_of_unknown_outcome_is_no_failure_to_tell():
    world = World()
    unknown = Outcome(kind=OutcomeKind.UNKNOWN, message="timed out")
    world.verdict = lambda action: unknown if isinstance(action, Create) else OK
    world.until("10:01:10")
    world.verdict = fail()
    world.until("10:01:20")
    assert world.runs == ["10:01:00"]
    assert world.events == []


def test_a_child_that_cannot_be_replaced_yet_keeps_the_next_from_starting():
    world = World(cron_job(concurrencyPolicy="Replace"))
    world.until("10:01:10")
    world.verdict = fail(Delete)
    world.until("10:02:10")
    assert world.runs == ["10:01:00"]
    world.verdict = lambda action: Outcome(kind=OutcomeKind.NOT_FOUND) if isinstance(action, Delete) else OK
    world.until("10:02:20")
    assert world.runs == ["10:01:00", "10:02:00"]


def test_history_that_cannot_be_deleted_keeps_nothing_from_starting():
    world = World(cron_job(successfulJobsHistoryLimit=0))
    world.until("10:01:10")
    world.verdict = fail(Delete)
    world.end("10:01")
    world.until("10:02:10")
    assert world.runs == ["10:01:00", "10:02:00"]
    world.verdict = fail()
    world.until("10:02:20")
    assert world.here == ["10:02:00"]


def test_a_child_on_its_way_out_is_not_deleted_again_and_counts_as_active():
    world = World(cron_job(concurrencyPolicy="Forbid"))
    world.until("10:01:10")
    world.change("10:01", metadata={"deletionTimestamp": stamp("10:01:20"), "finalizers": ["foregroundDeletion"]})
    world.until("10:02:10")
    assert world.runs == ["10:01:00"]
    world.change_spec(concurrencyPolicy="Replace")
    assert world.runs == ["10:01:00", "10:02:00"]
    assert not any(one.startswith("delete") for one in world.log)
    world.change_spec(concurrencyPolicy="Allow", successfulJobsHistoryLimit=0)
    world.end("10:01")
    assert not any(one.startswith("delete") for one in world.log)


def test_the_clock_was_ahead():
    world = World()
    world.until("10:05:10")
    world.set_clock("10:02:30")
    world.restart()
    assert world.next_run == "2026-03-04T10:06:00Z"
    world.until("10:06:10")
    assert world.runs[-2:] == ["10:05:00", "10:06:00"]
    assert world.last_run == "10:06:00"


def test_the_clock_is_put_forward():
    world = World(cron_job("0 * * * *"))
    world.until("10:10")
    world.set_clock("12:10:05")
    world.passes()  # the control loop plans again when it notices
    assert world.runs == ["12:00:00"]


def test_woken_too_early():
    world = World()
    world.set_clock("10:00:59.990")
    world.passes()
    assert world.runs == []
    world.until("10:01:00.1")
    assert world.runs == ["10:01:00"]


@pytest.mark.parametrize("schedule", ["rubbish", "0 0 * * 7", "TZ=X", "@every 1"])
def test_a_schedule_that_cannot_be_read_is_told_once_and_rests(schedule: str):
    world = World(cron_job(schedule))
    world.passes()
    assert [reason for reason, _ in world.events] == ["UnparseableSchedule"]
    assert world.codes == ["UnparseableSchedule"]
    assert world.last.wake_at is None
    assert world.last.errors == ()
    world.change_spec(schedule="still rubbish")
    assert len(world.events) == 2
    world.change_spec(schedule="*/1 * * * *")
    world.until("10:01:10")
    assert world.runs == ["10:01:00"]


def test_a_schedule_that_never_comes():
    world = World(cron_job("0 0 30 2 *"))
    assert world.codes == ["NeverRuns"]
    assert (world.last.wake_at, world.events) == (None, [])


def test_a_deadline_of_nothing_lets_nothing_start_and_says_so():
    world = World(cron_job(startingDeadlineSeconds=0))
    world.until("10:02:10")
    assert world.runs == []
    assert "TooLate" in world.codes


def test_every_is_counted_from_the_last_run_whatever_the_deadline():
    world = World(cron_job("@every 90s", startingDeadlineSeconds=10))
    world.until("10:05:10")
    assert world.runs == ["10:02:00", "10:03:30", "10:05:00"]


def test_every_after_a_break():
    world = World(cron_job("@every 90s"))
    world.until("10:02:10")
    world.down_until("10:05:10")
    world.until("10:06:40")
    assert world.runs == ["10:02:00", "10:05:00", "10:06:30"]


def test_no_run_is_started_while_it_is_deleted():
    world = World()
    world.until("10:01:10")
    going = {"deletionTimestamp": stamp("10:01"), "finalizers": ["foregroundDeletion"]}
    world.edit(ADVANCED_CRON_JOB, "a", {"metadata": going})
    world.passes()
    world.end("10:01")
    world.until("10:05")
    assert world.runs == ["10:01:00"]
    assert world.active == []
    assert world.codes == ["Terminating"]


def test_another_object_of_the_same_name_knows_nothing_of_the_first_one():
    world = World()
    world.down_until("13:05:30")
    assert len(world.events) == 1
    new = {**world.job["metadata"], "uid": "uid-new", "creationTimestamp": stamp("13:05:10")}
    world.put(ADVANCED_CRON_JOB, {**world.job, "metadata": new, "status": {}})
    world.passes()
    assert world.last_run == ""
    assert "TooManyMissedTimes" not in world.codes


def test_no_run_for_times_before_it_was_created():
    world = World(cron_job("0 * * * *"))
    child = {"name": "a-7", "annotations": {"apps.kruise.io/scheduled-at": "0001-01-01T00:00:00Z"}}
    owner = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "AdvancedCronJob", "name": "a", "uid": "uid-a"}
    world.put(JOB, {"metadata": child | {"ownerReferences": [owner | {"controller": True}]}})
    world.passes()
    assert world.last.numbers["active"] == 1  # regardless of the version in its owner reference
    assert world.runs == []


def test_a_child_from_the_end_of_time():
    world = World()
    world.until("10:01:10")
    world.change("10:01", metadata={"annotations": {"apps.kruise.io/scheduled-at": "9999-12-31T23:59:59Z"}})
    world.end("10:01")
    assert world.active == []
    assert "NeverRuns" in world.codes


def test_told_in_the_zone_of_the_process_when_nothing_else_is_said():
    world = World(cron_job("0 * * * *"), zone="Asia/Kolkata")
    world.until("10:30:10")
    (name,) = world.started
    assert name == f"a-{unix('10:30')}"
    annotations = world.held(JOB, name)["metadata"]["annotations"]
    assert annotations == {"apps.kruise.io/scheduled-at": "2026-03-04T16:00:00+05:30"}
    assert world.last_run == "10:30:00"
