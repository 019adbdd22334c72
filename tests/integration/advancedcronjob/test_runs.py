"""AdvancedCronJobs as users run them, with runs of all three kinds (advancedcronjob.md §4, §5, §8).

The Jobs are kube-controller-manager's own.
"""

from datetime import timedelta

import pytest

from flotilla_common.api.kinds.advancedcronjob.types import SCHEDULED_AT
from tests.support import broadcast
from tests.support.cron import NAME, active, begun, broadcasts, cronjob, due, ever, jobs, lists, runs, stop
from tests.support.workspace import Workspace, moment
from tests.testkit.documents import Json


def last(space: Workspace) -> str:
    """Return the status's lastScheduleTime."""
    return space.clone(NAME)["status"].get("lastScheduleTime", "")


@pytest.mark.parametrize(
    ("template", "kind", "version"),
    [
        (jobs(annotations={"team": "nightly"}), "Job", "batch/v1"),
        (broadcasts(), "BroadcastJob", "apps.kruise.io/v1beta1"),
        (lists("nginx:1"), "ImageListPullJob", "apps.kruise.io/v1beta1"),
    ],
    ids=["Job", "BroadcastJob", "ImageListPullJob"],
)
def test_a_run_of_each_kind(space: Workspace, template: Json, kind: str, version: str):
    """Rows 1, 2 and 34: a run has its time in its name, is in the status at once, and is deleted with its owner."""
    made = space.apply(cronjob(template, concurrencyPolicy="Forbid"))
    begun(space, 1, kind)
    stop(space)
    first, *_ = runs(space, kind).values()
    meta = first["metadata"]
    assert first["apiVersion"] == version
    assert meta["name"] == f"{NAME}-{due(first).timestamp():.0f}"
    assert due(first) > moment(made["metadata"]["creationTimestamp"])
    assert meta["annotations"][SCHEDULED_AT].endswith("Z")
    assert kind != "Job" or meta["annotations"]["team"] == "nightly"
    (owner,) = meta["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == (
        "apps.kruise.io/v1beta1",
        "AdvancedCronJob",
        made["metadata"]["uid"],
    )
    assert owner["controller"]
    space.until(lambda: bool(last(space)) and moment(last(space)) == due([*runs(space, kind).values()][-1]))
    assert space.clone(NAME)["status"]["type"] == kind
    if kind != "ImageListPullJob":  # without a node that one is over at once
        space.until(lambda: active(space) == [meta["name"]])
        (reference,) = space.clone(NAME)["status"]["active"]
        assert (reference["apiVersion"], reference["kind"], reference["uid"]) == (version, kind, meta["uid"])
    space.kubectl("delete", "acj", NAME)
    space.until(lambda: not runs(space, kind))


def test_runs_that_end_leave_the_status_and_then_the_cluster(space: Workspace):
    """Row 6: the newest two successful ones stay."""
    space.apply(cronjob(jobs(ends=True), "@every 2s", successfulJobsHistoryLimit=2))
    begun(space, 4)
    stop(space)
    space.until(lambda: not active(space) and len(runs(space)) == 2)
    names = ever(space)
    assert len(set(names)) == len(names)
    assert list(runs(space)) == sorted(names)[-2:]
    assert all(one["status"]["conditions"][-1]["type"] == "Complete" for one in runs(space).values())
    assert moment(last(space)) == due([*runs(space).values()][-1])


def test_runs_replace_one_another(space: Workspace):
    """Row 15."""
    space.apply(cronjob(jobs(), "@every 2s", concurrencyPolicy="Replace"))
    begun(space, 3)
    stop(space)
    space.until(lambda: list(runs(space)) == active(space) == [max(ever(space))])
    assert len(set(ever(space))) == len(ever(space))


def test_paused_and_resumed(space: Workspace):
    """Rows 8 and 9: running runs continue; of the missed ones only the latest is started."""
    space.apply(cronjob(jobs(ends=True), paused=True))
    made = moment(space.clone(NAME)["metadata"]["creationTimestamp"]) if space.clone(NAME) else space.clock()
    space.until(lambda: space.clock() > made + timedelta(seconds=3))
    assert not ever(space)
    assert space.clone(NAME)["status"] == {"type": "Job"}
    space.patch({"spec": {"paused": False}}, NAME)
    (run, *_) = begun(space, 1).values()
    space.patch({"spec": {"paused": True}}, NAME)
    assert due(run) >= moment(space.clone(NAME)["metadata"]["creationTimestamp"]) + timedelta(seconds=2)
    space.until(lambda: not active(space) and bool(last(space)))
    assert space.kubectl("get", "jobs", "-o", "name").splitlines() == [f"job.batch/{name}" for name in ever(space)]


def test_a_name_that_somebody_else_took(space: Workspace):
    """Row 18: the run is left out."""
    made = space.apply(cronjob(jobs(), "@every 3s", concurrencyPolicy="Forbid"))
    first, second = (moment(made["metadata"]["creationTimestamp"]) + timedelta(seconds=after) for after in (3, 6))
    foreign = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{NAME}-{first.timestamp():.0f}"}}
    template = jobs()["jobTemplate"]["spec"]
    space.create(foreign | {"spec": template})
    begun(space, 2)
    assert list(runs(space)) == [f"{NAME}-{second.timestamp():.0f}"]
    assert "ownerReferences" not in space.object("Job", foreign["metadata"]["name"])["metadata"]


def test_runs_that_are_refused_are_told_of(space: Workspace):
    """Row 33: a template that only the run's own admission looks at."""
    template = broadcasts()
    template["broadcastJobTemplate"]["spec"]["template"]["spec"] = {
        key: value for key, value in broadcast.BODY.items() if key != "restartPolicy"
    }
    space.apply(cronjob(template))
    (message, *_) = space.warnings("FailedCreate")
    assert f"{NAME}-" in message
    assert "pod restartPolicy can only be Never or OnFailure" in message
    assert not ever(space, "BroadcastJob")
    assert not last(space)
