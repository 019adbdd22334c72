"""The worked examples of imagepull.md §12 for ImageListPullJobs, and the rules behind them (§7, §8.2)."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.kinds.imagelistpulljob.types import ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.control.plan import Plan
from flotilla_jobs.imagelistpull.plan import plan, template_hash
from flotilla_jobs.imagelistpull.snapshot import ListJobSnapshot
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import codes
from tests.unit.imagepull.build import NOW, ago, begun, list_job, status_of, summary

OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "name": "L", "uid": "uid-L"}


def passed(one: ImageListPullJob, children: Sequence[ImagePullJob] = (), **members: Any) -> Plan:
    """Plan a pass of a list whose label is right already."""
    labels = {**one.metadata.labels, "controller-revision-hash": template_hash(one.spec)}
    labelled = decoded({"metadata": {**as_json(one)["metadata"], "labels": labels}}, ImageListPullJob).metadata
    return plan(ListJobSnapshot(job=replaced(one, labelled), children=children, **members), NOW)


def as_json(one: Any) -> Json:
    return msgspec.to_builtins(one)


def replaced(one: Any, metadata: Any) -> Any:
    return msgspec.structs.replace(one, metadata=metadata)


def child(image: str, parent: ImageListPullJob, *, label: str | None = None, **status: Any) -> ImagePullJob:
    """Return a job of the list, made from its present template."""
    mark = template_hash(parent.spec) if label is None else label
    metadata = {"name": f"L-{image}", "namespace": "ns", "uid": f"uid-L-{image}", "ownerReferences": [OWNER]}
    metadata |= {"labels": {"controller-revision-hash": mark} if mark else {}}
    spec = {key: value for key, value in as_json(parent.spec).items() if key != "images"}
    document = {"metadata": metadata, "spec": {"image": image, **spec}, "status": begun() | status}
    return decoded(document, ImagePullJob)


def made(result: Plan) -> list[str]:
    """Return the images of the jobs that are created."""
    bodies = [cast("Json", getattr(action, "body", {})) for action in result.actions]
    return [body["spec"]["image"] for body in bodies if body.get("kind") == "ImagePullJob"]


def events(result: Plan) -> list[tuple[str, str]]:
    found = [getattr(action, "on_success", None) for action in result.actions]
    return [(event.reason, event.message) for event in found if event is not None]


def test_41_a_job_per_image():
    result = passed(list_job("a", "b"))
    assert made(result) == ["a", "b"]
    assert events(result) == [("Successful create ImagePullJob", "Create 2 ImagePullJob")]
    assert result.stages[0].slow_start == 1
    status = status_of(result)
    assert (status["desired"], status["completed"], status["startTime"]) == (2, 0, "2026-03-01T12:00:00Z")


def test_a_new_job():
    one = list_job("a", parallelism="3", pullSecrets=["s"], selector={"names": ["n1"]})
    (create,) = passed(one).actions
    body = cast("Json", getattr(create, "body", {}))
    assert body["metadata"].pop("name").startswith("L-")
    assert body == {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {
            "namespace": "ns",
            "labels": {"controller-revision-hash": template_hash(one.spec)},
            "ownerReferences": [{**OWNER, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "image": "a",
            "parallelism": "3",
            "pullSecrets": ["s"],
            "selector": {"names": ["n1"]},
            "completionPolicy": {"type": "Always"},
        },
    }


def test_42_another_image():
    parent = list_job("a", "c")
    result = passed(parent, [child("a", parent), child("b", parent)])
    assert made(result) == ["c"]
    assert summary(result)[1:] == ["delete ImagePullJob L-b"]
    assert ("Successful delete ImagePullJob", "Delete 1 ImagePullJob") in events(result)


def test_43_another_template():
    old, new = list_job("a", "b", parallelism=1), list_job("a", "b", parallelism=2)
    assert template_hash(old.spec) != template_hash(new.spec)
    result = passed(new, [child("a", old), child("b", old)])
    assert made(result) == ["a", "b"]
    assert summary(result)[2:] == ["delete ImagePullJob L-a", "delete ImagePullJob L-b"]


@pytest.mark.parametrize("label", ["", "f00"], ids=["no label", "a label of the reference"])
def test_an_equal_template_is_enough(label: str):
    parent = list_job("a", parallelism=2)
    taken_over = list_job("a", parallelism=2, imagePullPolicy="IfNotPresent", pullPolicy={"timeoutSeconds": 600})
    assert summary(passed(parent, [child("a", taken_over, label=label)])) == []


def test_defaults_do_not_change_the_hash():
    full = list_job("a", imagePullPolicy="IfNotPresent", pullPolicy={"timeoutSeconds": 600, "backoffLimit": 3})
    assert template_hash(list_job("b", "c").spec) == template_hash(full.spec)


MIXED: list[tuple[str, Json]] = [
    ("a", {"desired": 3, "succeeded": 2, "failed": 1}),
    ("b", {"desired": 3, "succeeded": 3}),
]


@pytest.mark.parametrize(
    ("policy", "done"), [pytest.param("Always", True, id="44"), pytest.param("Never", False, id="45")]
)
def test_counts(policy: str, done: bool):
    parent = list_job("a", "b", completionPolicy={"type": policy}, status=begun())
    result = passed(parent, [child(image, parent, **status) for image, status in MIXED])
    status = status_of(result, begun())
    assert {name: status[name] for name in ("desired", "completed", "succeeded", "active")} == {
        "desired": 2,
        "completed": 2,
        "succeeded": 1,
        "active": 0,
    }
    assert [(one["name"], one["imagePullJob"]) for one in status["failedImageStatuses"]] == [("a", "L-a")]
    assert "kubectl get ImagePullJob L-a" in status["failedImageStatuses"][0]["message"]
    assert ("completionTime" in status) == done
    assert "FailedImages" in codes(result)


def test_jobs_that_were_not_looked_at_or_are_not_wanted_do_not_count():
    parent = list_job("a", "b", status=begun())
    new = decoded({**as_json(child("b", parent)), "status": {}}, ImagePullJob)
    stranger = child("c", parent, desired=1, failed=1)
    status = status_of(passed(parent, [child("a", parent, desired=1, active=1), new, stranger]), begun())
    assert (status["active"], status["completed"]) == (1, 0)
    assert "failedImageStatuses" not in status


def over(seconds: float) -> Json:
    return {"startTime": ago(100), "completionTime": ago(seconds), "desired": 1}


@pytest.mark.parametrize(
    ("ended", "writes", "wakes"), [pytest.param(20, ["delete ImageListPullJob L"], None, id="47"), (5, [], 15)]
)
def test_the_end_of_a_list(ended: float, writes: list[str], wakes: float | None):
    policy = {"type": "Always", "ttlSecondsAfterFinished": 20}
    result = passed(list_job("a", completionPolicy=policy, status=over(ended)))
    assert summary(result) == writes
    assert (None if result.wake_at is None else (result.wake_at - NOW).total_seconds()) == wakes


def test_46_a_deleted_list_is_left_to_the_garbage_collector():
    one = list_job("a", meta={"deletionTimestamp": "2026-03-01T11:00:00Z"})
    assert plan(ListJobSnapshot(job=one), NOW) == Plan()


def test_48_names_of_one_image_are_two_jobs():
    assert made(passed(list_job("nginx", "nginx:latest"))) == ["nginx", "nginx:latest"]


@pytest.mark.parametrize("status", [{}, over(5)], ids=["running", "completed"])
def test_the_label_follows_the_template(status: Json):
    one = list_job("a", status=status)
    result = plan(ListJobSnapshot(job=one), NOW)
    body = cast("Json", getattr(result.actions[0], "body", {}))
    assert body == {"metadata": {"labels": {"controller-revision-hash": template_hash(one.spec)}}}


def test_a_taken_name_is_avoided_and_names_do_not_depend_on_chance():
    (first,) = passed(list_job("a")).actions
    assert passed(list_job("a")).actions == [first]
    (second,) = passed(list_job("a"), taken={first.name}).actions
    assert second.name != first.name


def test_of_two_jobs_for_one_image_the_older_one_stays():
    parent = list_job("a")
    younger = decoded({**as_json(child("a", parent)), "metadata": {"name": "younger", "uid": "y"}}, ImagePullJob)
    assert summary(passed(parent, [child("a", parent), younger])) == ["delete ImagePullJob younger"]
