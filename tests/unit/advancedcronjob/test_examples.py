"""The worked examples of advancedcronjob.md §8 about what is done; those about admission are with admission."""

from datetime import timedelta
from typing import Any

import pytest

from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import JOB
from flotilla_common.control.plan import Create
from tests.unit.advancedcronjob.world import DENIED, OK, World, at, cron_job, stamp, unix


def test_1_the_first_sync():
    world = World()
    assert world.status == {"type": "Job"}
    assert world.runs == []
    assert world.next_run == "2026-03-04T10:01:00Z"
    assert world.last.wake_at is not None
    assert at("10:01") < world.last.wake_at <= at("10:01:01")  # a little after, never before


def test_2_a_run():
    world = World()
    world.until("10:00:59")
    assert world.runs == []
    world.until("10:01:00.5")
    assert world.started == [f"a-{unix('10:01')}"]
    child = world.held(JOB, f"a-{unix('10:01')}")
    assert child["metadata"]["annotations"] == {"apps.kruise.io/scheduled-at": "2026-03-04T10:01:00Z"}
    assert (world.last_run, world.active) == ("10:01:00", ["10:01:00"])
    assert world.status["active"][0] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "ns",
        "name": f"a-{unix('10:01')}",
        "uid": child["metadata"]["uid"],
        "resourceVersion": child["metadata"]["resourceVersion"],
    }


def test_3_children_that_disappear_after_their_end_for_many_hours():
    world = World(cron_job(kind="BroadcastJob"))
    for minute in range(1, 181):
        due = f"{10 + minute // 60}:{minute % 60:02}"
        world.until(f"{due}:05")
        world.end(due)
        world.until(f"{due}:35")
        world.delete(due)
        assert world.last_run == f"{due}:00"
        assert world.here == []
    assert len(world.runs) == len(set(world.runs)) == 180
    assert world.events == []


def test_4_no_history_and_a_run_a_day():
    world = World(cron_job("13 9 * * *", successfulJobsHistoryLimit=0))
    world.until(at("09:13:10") + timedelta(days=1))
    assert world.runs == ["03-05 09:13"]
    name = world.started[0]
    world.put(JOB, {**world.held(JOB, name), "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    world.passes()
    assert world.here == []
    world.until(at("08:00") + timedelta(days=2))
    assert world.runs == ["03-05 09:13"]


def test_5_a_deleted_run_is_not_repeated():
    world = World()
    world.until("10:01:20")
    world.delete("10:01")
    assert world.active == []
    assert world.last_run == "10:01:00"
    world.until("10:02:10")
    assert world.runs == ["10:01:00", "10:02:00"]


@pytest.mark.parametrize(
    ("how", "limits", "left"),
    [
        ("Complete", {}, ["10:03:00", "10:04:00", "10:05:00"]),
        ("Failed", {}, ["10:05:00"]),
        ("Complete", {"successfulJobsHistoryLimit": 0}, []),
        ("Failed", {"failedJobsHistoryLimit": 2}, ["10:04:00", "10:05:00"]),
        ("Failed", {"failedJobsHistoryLimit": None}, ["10:01:00", "10:02:00", "10:03:00", "10:04:00", "10:05:00"]),
    ],
)
def test_6_7_history(how: str, limits: dict[str, Any], left: list[str]):
    world = World(cron_job(**limits))
    world.until("10:05:10")
    for minute in range(1, 6):
        ended = {"startTime": stamp(f"10:0{minute}"), "conditions": [{"type": how, "status": "True"}]}
        world.change(f"10:0{minute}", status=ended)
    assert world.here == left
    assert world.active == []


def test_8_9_paused():
    world = World()
    world.until("10:01:10")
    world.change_spec(paused=True, successfulJobsHistoryLimit=0)
    assert world.last.wake_at is None
    assert world.codes == ["PausedByUser", "StartedRun"]
    world.end("10:01")
    assert (world.active, world.here) == ([], [])
    world.until("10:06:20")
    assert world.runs == ["10:01:00"]
    world.change_spec(paused=False)
    assert world.runs == ["10:01:00", "10:06:00"]


def test_10_paused_for_longer_than_the_deadline():
    world = World(cron_job(startingDeadlineSeconds=10))
    world.until("10:01:10")
    world.change_spec(paused=True)
    world.until("10:06:20")
    world.change_spec(paused=False)
    assert world.runs == ["10:01:00"]
    assert "TooLate" in world.codes
    assert world.next_run == "2026-03-04T10:07:00Z"
    world.until("10:07:01")
    assert world.runs == ["10:01:00", "10:07:00"]
    assert "TooLate" not in world.codes


def test_11_a_break_of_less_than_a_hundred_runs():
    world = World()
    world.until("10:05")
    world.down_until("10:50:20")
    assert world.runs[-2:] == ["10:04:00", "10:50:00"]
    assert world.events == []


def test_12_too_many_missed_runs():
    world = World()
    world.until("10:05:30")
    world.down_until("13:05:30")
    text = "more than 100 runs missed since 2026-03-04T10:05:00Z; they are skipped, next run at 2026-03-04T13:06:00Z"
    assert world.events == [("TooManyMissedTimes", text)]
    assert world.runs[-1] == "10:05:00"
    assert world.last_run == "10:05:00"
    world.until("13:05:55")
    world.passes()
    assert "TooManyMissedTimes" in world.codes
    world.until("13:08:10")
    assert world.runs[-3:] == ["13:06:00", "13:07:00", "13:08:00"]
    assert "TooManyMissedTimes" not in world.codes
    assert len(world.events) == 1


def test_12_restarted_before_the_run_that_follows():
    world = World()
    world.down_until("13:05:30")
    world.restart()
    assert [reason for reason, _ in world.events] == ["TooManyMissedTimes", "TooManyMissedTimes"]
    world.until("13:06:10")
    assert world.runs == ["13:06:00"]


@pytest.mark.parametrize(("back", "runs"), [("11:40:30", ["11:40:00"]), ("11:41:30", [])])
def test_12_exactly_a_hundred_are_not_too_many(back: str, runs: list[str]):
    world = World()
    world.down_until(back)
    assert world.runs == runs
    assert bool(world.events) is not bool(runs)


def test_12b_forbidden_for_very_long():
    world = World(cron_job(concurrencyPolicy="Forbid"))
    world.until("11:41:50")
    assert world.events == []
    world.until("11:42:10")
    assert [reason for reason, _ in world.events] == ["TooManyMissedTimes"]
    world.until("12:01:20")
    assert world.runs == ["10:01:00"]
    assert len(world.events) == 1
    world.end("10:01")
    assert world.runs == ["10:01:00", "12:01:00"]


def test_13_a_deadline_bounds_what_is_looked_at():
    world = World(cron_job(startingDeadlineSeconds=200))
    world.until("10:05:30")
    world.down_until("13:05:30")
    assert world.runs[-1] == "13:05:00"
    assert world.events == []


def test_14_forbid():
    world = World(cron_job(concurrencyPolicy="Forbid"))
    world.until("10:03:30")
    assert world.runs == ["10:01:00"]
    assert "ForbiddenByPolicy" in world.codes
    world.end("10:01")
    assert world.runs == ["10:01:00", "10:03:00"]
    assert world.last_run == "10:03:00"


def test_15_replace():
    world = World(cron_job(concurrencyPolicy="Replace"))
    world.until("10:02:10")
    assert world.runs == ["10:01:00", "10:02:00"]
    assert world.here == world.active == ["10:02:00"]
    first, second = (f"a-{unix(due)}" for due in ("10:01", "10:02"))
    assert [one for one in world.log if one.startswith(("delete", "create"))] == [
        f"create {first}",
        f"delete {first}",
        f"create {second}",
    ]


def test_16_allow():
    world = World()
    world.until("10:03:10")
    assert world.active == ["10:01:00", "10:02:00", "10:03:00"]
    assert world.last.numbers == {"active": 3, "successful": 0, "failed": 0}


def test_17_a_view_without_the_child_that_was_just_made():
    world = World()
    world.blind = True
    world.until("10:01:20")
    world.blind = False
    world.until("10:01:30")
    assert world.runs == ["10:01:00"]
    assert (world.last_run, world.events) == ("10:01:00", [])


@pytest.mark.parametrize("blind", [False, True])
def test_18_somebody_else_has_the_name(blind: bool):
    world = World()
    world.blind = blind
    world.put(JOB, {"metadata": {"name": f"a-{unix('10:02')}", "annotations": {}}})
    world.blind = False
    world.until("10:02:30")
    assert world.runs == ["10:01:00"]
    assert world.codes[0] == "NameTaken"
    assert [reason for reason, _ in world.events] == ["FailedCreate"]
    world.until("10:03:10")
    assert world.runs == ["10:01:00", "10:03:00"]
    assert len(world.events) == 1


@pytest.mark.parametrize(
    ("schedule", "zone"),
    [("0 9 * * ?", "Asia/Tokyo"), ("CRON_TZ=Asia/Tokyo 0 9 * * ?", None), ("TZ=Asia/Tokyo 0 9 * * ?", None)],
)
def test_19_20_zones(schedule: str, zone: str | None):
    world = World(cron_job(schedule, timeZone=zone))
    assert world.next_run == "2026-03-05T00:00:00Z (2026-03-05T09:00:00+09:00 in Asia/Tokyo)"


def test_25_every():
    world = World(cron_job("@every 90s"))
    world.until("10:03:40")
    assert world.runs == ["10:02:00", "10:03:30"]


def test_26_a_denser_schedule():
    world = World(cron_job("0 0 * * *"))
    world.until("10:30:10")
    assert world.runs == []
    world.change_spec(schedule="*/1 * * * *")
    assert world.runs == ["10:30:00"]


def test_28_the_next_child_has_the_new_images():
    world = World(cron_job(kind="ImageListPullJob", concurrencyPolicy=""))
    world.until("10:01:10")
    world.change_spec(template={"imageListPullJobTemplate": {"spec": {"images": ["nginx:1.26"]}}})
    world.until("10:02:10")
    (child,) = world.objects.all(IMAGE_LIST_PULL_JOB)
    assert child["spec"]["images"] == ["nginx:1.26"]
    assert world.status["type"] == "ImageListPullJob"


@pytest.mark.parametrize(
    ("status", "numbers"),
    [
        ({"completionTime": stamp("10:01:30"), "desired": 2, "succeeded": 1}, {"successful": 0, "failed": 1}),
        ({"completionTime": stamp("10:01:30"), "desired": 2, "succeeded": 2}, {"successful": 1, "failed": 0}),
        ({"desired": 2, "succeeded": 2}, {"active": 1, "successful": 0}),
    ],
)
def test_32_lists(status: dict[str, Any], numbers: dict[str, int]):
    world = World(cron_job(kind="ImageListPullJob", concurrencyPolicy="Replace"))
    world.until("10:01:10")
    world.change("10:01", status=status)
    assert world.last.numbers.items() >= numbers.items()


def test_33_every_child_is_denied():
    world = World(cron_job(kind="BroadcastJob"))
    world.verdict = lambda action: DENIED if isinstance(action, Create) else OK
    world.until("10:01:30")
    text = f'creating BroadcastJob a-{unix("10:01")} is refused: admission webhook "v" denied the request: no'
    assert world.events == [("FailedCreate", text)]
    world.until("10:03:30")
    assert [reason for reason, _ in world.events] == ["FailedCreate"] * 3
    assert world.runs == []
    assert world.last_run == ""
    world.verdict = lambda action: OK
    world.until("10:03:40")
    assert world.runs == ["10:03:00"]


def test_34_orphans_of_a_former_object():
    world = World()
    reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "a", "controller": True}
    orphan = {"name": "a-1", "annotations": {"apps.kruise.io/scheduled-at": stamp("11:00")}}
    world.put(JOB, {"metadata": orphan | {"ownerReferences": [reference | {"uid": "uid-former"}]}})
    world.passes()
    assert world.last_run == ""
    assert world.last.numbers["active"] == 0


@pytest.mark.parametrize("text", ["garbage", "", "2026-03-04", "2026-03-04T10:05:00", None])
def test_35_a_child_that_does_not_say_when_it_was_due(text: str | None):
    world = World()
    world.until("10:02:10")
    world.set_clock("10:02:15")
    world.put(JOB, _annotated(world, "10:02", text))
    stored = world.status["lastScheduleTime"]
    world.passes()
    assert world.status["lastScheduleTime"] == stored
    assert world.active == ["10:01:00", "10:02:00"]


def test_35_and_nothing_else_says_it():
    world = World()
    world.verdict = lambda action: OK if isinstance(action, Create) else DENIED  # no status can be written
    world.until("10:01:00.5")
    world.verdict = lambda action: OK
    world.put(JOB, _annotated(world, "10:01", "garbage"))
    world.restart()
    assert world.runs == ["10:01:00"]
    assert world.last_run == ""
    world.until("10:02:10")
    assert world.runs == ["10:01:00", "10:02:00"]


def _annotated(world: World, due: str, text: str | None) -> dict[str, Any]:
    document = world.held(JOB, f"a-{unix(due)}")
    annotations = {} if text is None else {"apps.kruise.io/scheduled-at": text}
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(
    ("kind", "length", "long"),
    [("BroadcastJob", 60, True), ("Job", 53, True), ("Job", 52, False), ("ImageListPullJob", 60, False)],
)
def test_36_names_that_are_too_long_are_foreseen(kind: str, length: int, long: bool):
    world = World(cron_job(kind=kind, name="a" * length))
    assert ("NameTooLong" in world.codes) is long


def test_a_broadcast_job_that_never_ends_is_active_for_ever():
    world = World(cron_job(kind="BroadcastJob", concurrencyPolicy="Forbid"))
    world.until("10:05:10")
    assert world.runs == ["10:01:00"]
    assert world.held(BROADCAST_JOB, world.started[0])["apiVersion"] == BROADCAST_JOB.api_version
