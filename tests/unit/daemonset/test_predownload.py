"""Images pulled ahead of updates (daemonset.md §4.11)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Create
from tests.testkit.documents import Json
from tests.unit.daemonset.build import Builder, ds, planned, revision, summary

OLD = "1A 2A 3A"
CREATED, IGNORED = "apps.kruise.io/pre-predownload-created", "apps.kruise.io/image-predownload-ignored"


def jobs(builder: Builder, found: str = OLD, **more: Any) -> list[Json]:
    made = [one for one in planned(builder, found, on=3, pull_jobs=[], **more).actions if isinstance(one, Create)]
    return [one.body for one in made if one.resource.kind == "ImagePullJob"]


def marks(builder: Builder, **more: Any) -> list[str]:
    """Return the labels that the revision gets."""
    written = planned(builder, OLD, on=3, pull_jobs=[], **more).actions
    bodies = [getattr(one, "body", {}) for one in written if one.resource.kind == "ControllerRevision"]
    return [label for body in bodies for label in body["metadata"]["labels"]]


def test_one_job_for_each_changed_image() -> None:
    builder = ds().annotated(**{"apps.kruise.io/image-predownload-parallelism": "3"})
    (job,) = jobs(builder)
    assert job["metadata"]["name"] == "d-B-main"
    assert job["metadata"]["labels"] == {"app": "d", "controller.kubernetes.io/hash": "B"}
    assert job["spec"]["image"] == "agent:B"
    assert job["spec"]["parallelism"] == 3
    assert job["spec"]["pullPolicy"] == {"backoffLimit": 1, "timeoutSeconds": 300}
    (expression,) = job["spec"]["podSelector"]["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["d-B", "B"])
    assert marks(builder) == [CREATED]


def test_the_first_revision_counts_every_image_as_new() -> None:
    assert [job["metadata"]["name"] for job in jobs(ds("A"), "1A!")] == ["d-A-main"]


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (ds().m("100%"), [IGNORED]),
        (ds().m(3), [IGNORED]),
        (ds().m("67%"), [IGNORED]),  # rounded up: one batch
        (ds().m(2), [CREATED]),
        (ds().m("100%").p(1), [CREATED]),
        (ds().surge(3), [CREATED]),
        (ds().m("many"), [CREATED]),
        (ds().on_delete(), []),
        (ds().rolling(rollingUpdateType="InPlaceIfPossible"), [CREATED]),
    ],
)
def test_an_update_in_one_batch_is_not_worth_it(builder: Builder, expected: list[str]) -> None:
    assert marks(builder) == expected


@pytest.mark.parametrize("label", [CREATED, IGNORED])
def test_it_is_decided_once(label: str) -> None:
    labels = {"app": "d", "controller-revision-hash": "B", label: "true"}
    assert marks(ds(), revisions=[revision("A", 1), revision("B", 2, labels=labels)]) == []


def test_the_jobs_go_when_the_update_is_over() -> None:
    done = ds().stored(updatedNumberScheduled=3, desiredNumberScheduled=3, updateRevision="B")
    job = ImagePullJob(metadata=ObjectMeta(name="d-B-main", namespace="default", uid="j"))
    assert summary(planned(done, "1B 2B 3B", on=3, pull_jobs=[job])) == ["delete:ImagePullJob:d-B-main"]


def test_nothing_without_the_gate() -> None:
    assert not [one for one in planned(ds(), OLD, on=3).actions if one.resource.kind == "ImagePullJob"]
