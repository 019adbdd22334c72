"""Active children, the body of a new child, and reasons while it runs (advancedcronjob.md §4.2, §4.5)."""

from typing import Any

import pytest

from flotilla_common.api.batch import Job
from flotilla_common.api.kinds.advancedcronjob.schedule import zone_named
from flotilla_common.api.kinds.advancedcronjob.types import AdvancedCronJob
from flotilla_common.control.keystate import Memory
from flotilla_common.control.writes import WriteFailure
from flotilla_common.settings import Settings
from flotilla_jobs.advancedcronjob.controller import CRON_JOBS, JOBS, Gatherer, options
from flotilla_jobs.advancedcronjob.run import creation
from flotilla_jobs.advancedcronjob.snapshot import Options
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json, decoded, metadata, owner
from tests.unit.advancedcronjob.world import World, at, cron_job, stamp, unix


def body(zone: str = "UTC", **template: Any) -> Json:
    """Return the object created for the run of 10:01 from a job template."""
    job = decoded(cron_job(template={"jobTemplate": template}), AdvancedCronJob)
    return creation(job, at("10:01"), zone_named(zone)).body


def test_a_new_child():
    metadata = {
        "name": "mine",
        "namespace": "other",
        "labels": {"app": "x"},
        "annotations": {"note": "y", "apps.kruise.io/scheduled-at": "never"},
        "finalizers": ["keep"],
        "ownerReferences": [{"uid": "other"}],
    }
    spec = {"template": {"spec": {"restartPolicy": "Never"}}, "backoffLimit": 2}
    assert body(metadata=metadata, spec=spec) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"a-{unix('10:01')}",
            "namespace": "ns",
            "labels": {"app": "x"},
            "annotations": {"note": "y", "apps.kruise.io/scheduled-at": "2026-03-04T10:01:00Z"},
            "ownerReferences": [owner("AdvancedCronJob", "a", "uid-a", blockOwnerDeletion=True)],
        },
        "spec": spec,
    }


@pytest.mark.parametrize("metadata", [None, {}, {"labels": None}, {"annotations": ["no"]}, "no"])
def test_whatever_users_write_for_metadata(metadata: Any):
    made = body(metadata=metadata, spec={})["metadata"]
    assert made["annotations"] == {"apps.kruise.io/scheduled-at": "2026-03-04T10:01:00Z"}
    assert made["labels"] == {}


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "2026-03-04T10:01:00Z"),
        ("Europe/London", "2026-03-04T10:01:00Z"),
        ("America/New_York", "2026-03-04T05:01:00-05:00"),
    ],
)
def test_it_says_when_it_was_due_in_the_zone_of_the_process(zone: str, expected: str):
    assert body(zone)["metadata"]["annotations"]["apps.kruise.io/scheduled-at"] == expected


@pytest.mark.parametrize("template", [{}, {"jobTemplate": None}])
def test_without_a_template_the_apiserver_has_the_word(template: Json):
    """Happens only where the webhook is not called."""
    made = creation(decoded(cron_job(template=template), AdvancedCronJob), at("10:01"), zone_named("UTC")).body
    assert (made["kind"], made["spec"]) == ("BroadcastJob", {})


def owned(name: str, uid: str, *, namespace: str = "ns", controller: bool = True, version: str = "v1beta1") -> Job:
    owners = [owner("AdvancedCronJob", "a", uid, f"apps.kruise.io/{version}", controller=controller)]
    named = metadata(name, namespace, uid=f"uid-{name}", version=5, ownerReferences=owners)
    return decoded({"metadata": named}, Job)


def gathered(*jobs: Job, memory: Memory | None = None):
    context = FakeContext()
    gatherer = Gatherer(context, Options())
    context.put(CRON_JOBS, decoded(cron_job(), AdvancedCronJob))
    context.put(JOBS, *jobs)
    snapshot = gatherer.gather(("ns", "a"), memory or Memory())
    assert snapshot is not None
    return snapshot


def test_children_are_known_by_the_uid_of_their_controller():
    snapshot = gathered(
        owned("b", "uid-a"),
        owned("a", "uid-a", version="v1alpha1"),
        owned("former", "uid-former"),
        owned("elsewhere", "uid-a", namespace="other"),
        owned("not-controlled", "uid-a", controller=False),
    )
    assert [child.metadata.name for child in snapshot.children] == ["a", "b"]
    assert "former" in snapshot.taken
    assert "elsewhere" not in snapshot.taken


def test_what_does_not_exist_is_not_planned():
    assert Gatherer(FakeContext(), Options()).gather(("ns", "gone"), Memory()) is None


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (WriteFailure("creating Job a-1", "denied"), "creating Job a-1 is refused: denied"),
        (WriteFailure("creating Job a-1", "denied", unknown=True), ""),
        (WriteFailure("deleting Job a-1", "other"), ""),
        (WriteFailure("creating Job a-1", "denied: a-1 already exists"), ""),
    ],
)
def test_why_a_child_could_not_be_created(refusal: WriteFailure, told: str):
    text = "denied" if refusal.text == "other" else refusal.text
    assert gathered(memory=Memory(failures={"create": text}, refused=(refusal,))).failure == told


@pytest.mark.parametrize(
    ("zone", "expected"), [(None, "UTC"), ("", "UTC"), ("Asia/Tokyo", "Asia/Tokyo"), (":/etc/localtime", "UTC")]
)
def test_the_zone_of_the_process(zone: str | None, expected: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TZ", raising=False)
    if zone is not None:
        monkeypatch.setenv("TZ", zone)
    assert options(Settings(), "v1.34.0") == Options(zone=expected)


def test_what_is_said_of_a_run():
    world = World()
    world.verdict = lambda action: (_ for _ in ()).throw(AssertionError(action.name))
    world.set_clock("10:01")
    with pytest.raises(AssertionError):
        world.passes()
    name = f"a-{unix('10:01')}"
    assert [(reason.code, reason.sentence, reason.objects) for reason in world.last.reasons] == [
        ("Starting", f"starting the run of 2026-03-04T10:01:00Z as {name}", (name,)),
        ("Waiting", "waiting: the next run is due at 2026-03-04T10:02:00Z", ()),
    ]


def test_what_is_said_while_it_runs():
    world = World()
    world.until("10:01:10")
    running = f"1 running: a-{unix('10:01')}, the latest was due at 2026-03-04T10:01:00Z"
    assert [reason.message for reason in world.last.reasons] == ["the next run is due at 2026-03-04T10:02:00Z", running]
    assert world.last.reasons[1].objects == (f"a-{unix('10:01')}",)


def test_what_is_said_of_a_run_that_waits():
    world = World(cron_job(concurrencyPolicy="Forbid", startingDeadlineSeconds=30))
    world.until("10:02:10")
    name = f"a-{unix('10:01')}"
    (text,) = [reason.message for reason in world.last.reasons if reason.code == "ForbiddenByPolicy"]
    assert text == f"the run of {stamp('10:02')} is put off: concurrencyPolicy is Forbid, and {name} has not ended"
    world.until("10:02:40")
    world.passes()
    (text,) = [reason.message for reason in world.last.reasons if reason.code == "TooLate"]
    assert text == f"the run of {stamp('10:02')} was not started within startingDeadlineSeconds, 30"
