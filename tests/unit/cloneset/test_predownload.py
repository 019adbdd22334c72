"""Images pulled ahead of in-place updates (common.md §12)."""

from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.control.plan import Action, Create, Delete, Patch, Plan
from tests.testkit.documents import Json
from tests.unit.cloneset.build import CloneSetBuilder, cloneset, planned, revisions, template

CREATED, IGNORED = "apps.kruise.io/pre-predownload-created", "apps.kruise.io/image-predownload-ignored"


def updating(**in_place: Any) -> CloneSetBuilder:
    """Build a rollout of five pods from nginx:1 to nginx:2, one at a time."""
    builder = cloneset().replicas(5).max_unavailable(1).in_place()
    builder.spec["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"] = in_place
    return builder


def job(name: str = "old") -> ImagePullJob:
    document = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}}
    return msgspec.convert(document, ImagePullJob)


def stored(label: str = "", **content: Any) -> tuple[ControllerRevision, ...]:
    """Return the old and the new revision; the new one with a marker label."""
    old, new = revisions(template("nginx:1"), content.get("new") or template("nginx:2"))
    labels = {**new.metadata.labels, **({label: "true"} if label else {})}
    return old, msgspec.structs.replace(new, metadata=msgspec.structs.replace(new.metadata, labels=labels))


def passed(builder: CloneSetBuilder, **members: Any) -> Plan:
    members = {"revisions": stored(), "pull_jobs": []} | members
    return planned(builder, "5o", **members)


def of_pulls(plan: Plan) -> list[Action]:
    """Return what the pass does about image pulls."""
    return [
        action
        for action in plan.actions
        if action.resource.kind == "ImagePullJob"
        or (isinstance(action, Patch) and action.resource.kind == "ControllerRevision")
    ]


def marker(plan: Plan) -> str:
    """Return the label that the pass puts on the revision."""
    for action in of_pulls(plan):
        if isinstance(action, Patch):
            return next(iter(action.body["metadata"]["labels"]))
    return ""


def test_a_job_per_changed_image():
    create, mark = of_pulls(passed(updating()))
    assert isinstance(create, Create)
    body = cast("Json", create.body)
    owner = body["metadata"]["ownerReferences"][0]
    labels = {"app": "sample", "controller.kubernetes.io/hash": "new"}
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CloneSet", "sample", True)
    assert (body["metadata"]["name"], body["metadata"]["labels"]) == ("sample-new-nginx", labels)
    assert body["spec"] == {
        "image": "nginx:2",
        "podSelector": {
            "matchLabels": {"app": "sample"},
            "matchExpressions": [
                {"key": "controller-revision-hash", "operator": "NotIn", "values": ["sample-new", "new"]}
            ],
        },
        "parallelism": 1,
        "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": 300},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 600},
        "sandboxConfig": {"annotations": {}, "labels": labels},
    }
    assert create.on_success is not None
    assert (create.on_success.reason, create.on_success.message, create.on_success.warning) == (
        "CreatedImagePullJob",
        "created ImagePullJob sample-new-nginx for image: nginx:2",
        False,
    )
    assert create.on_failure is not None
    assert create.on_failure.text("boom") == "failed to create ImagePullJob sample-new-nginx: boom"
    assert isinstance(mark, Patch)
    assert mark.body == {"metadata": {"labels": {CREATED: "true"}}}


def test_settings_of_the_cloneset_and_secrets_of_the_template():
    builder = updating(imagePreDownloadParallelism="3", imagePreDownloadTimeoutSeconds=60)
    old = template("nginx:1", imagePullSecrets=[{"name": "s"}])
    new = template("nginx:2", imagePullSecrets=[{"name": "s"}])
    builder.template(new)
    create = of_pulls(passed(builder, revisions=revisions(old, new)))[0]
    spec = cast("Json", getattr(create, "body", {}))["spec"]
    assert (spec["parallelism"], spec["pullPolicy"]["timeoutSeconds"], spec["pullSecrets"]) == ("3", 60, ["s"])


@pytest.mark.parametrize(
    ("builder", "label"),
    [
        pytest.param(updating(), CREATED, id="several rounds"),
        pytest.param(updating().replicas(3), IGNORED, id="three pods"),
        pytest.param(cloneset().replicas(5).max_unavailable(1), IGNORED, id="pods are recreated"),
        pytest.param(updating().max_unavailable("100%"), IGNORED, id="all at once"),
        pytest.param(updating().max_unavailable("99%"), CREATED, id="99 % of 5 are 4"),
        pytest.param(updating().max_unavailable("a lot"), CREATED, id="unreadable"),
        pytest.param(cloneset().replicas(5).in_place(), CREATED, id="by default a fifth at once"),
        pytest.param(updating().replicas(4), CREATED, id="four pods"),
        pytest.param(updating().max_unavailable("100%").partition(1), CREATED, id="all at once behind a partition"),
        pytest.param(updating(imagePreDownloadMinUpdatedReadyPods=1), "", id="waits for a ready pod"),
        pytest.param(
            updating(imagePreDownloadMinUpdatedReadyPods=1).stored(updateRevision="sample-new", updatedReadyReplicas=1),
            CREATED,
            id="has waited for a ready pod",
        ),
        pytest.param(
            updating(imagePreDownloadMinUpdatedReadyPods=1).stored(
                updateRevision="sample-other", updatedReadyReplicas=1
            ),
            "",
            id="ready pods of another revision",
        ),
    ],
)
def test_when_it_is_worth_it(builder: CloneSetBuilder, label: str):
    plan = passed(builder)
    assert marker(plan) == label
    assert bool([one for one in of_pulls(plan) if isinstance(one, Create)]) == (label == CREATED)


def test_a_change_that_needs_new_pods_is_not_pulled_ahead():
    new = template("nginx:2", hostname="other")
    builder = updating()
    builder.template(new)
    assert marker(passed(builder, revisions=revisions(template("nginx:1"), new))) == IGNORED


@pytest.mark.parametrize("label", [CREATED, IGNORED])
def test_once_per_revision(label: str):
    assert of_pulls(passed(updating(), revisions=stored(label))) == []


def test_nothing_while_it_is_switched_off():
    assert of_pulls(passed(updating(), pull_jobs=None)) == []


def test_the_jobs_go_when_the_update_is_done():
    builder = updating().stored(currentRevision="sample-new")
    (delete,) = of_pulls(passed(builder, pull_jobs=[job()]))
    assert isinstance(delete, Delete)
    assert (delete.name, delete.uid) == ("old", "uid-old")


def test_failures_do_not_hold_the_update_up():
    plan = passed(updating())
    stages = [stage for stage in plan.stages if any(one in of_pulls(plan) for chain in stage.chains for one in chain)]
    assert len(stages) == 2
    assert not any(stage.stop_on_failure for stage in stages)
