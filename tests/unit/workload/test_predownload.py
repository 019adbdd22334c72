"""Images pulled ahead for any kind, and their pods (common.md §12, daemonset.md §4.11)."""

from typing import Any

import pytest

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.meta import LabelSelector, ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Create, Patch
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.workload.predownload import ImagePulls, is_decided, plan_no_pulls, plan_pulls
from tests.unit.workload.build import CODEC, container, revision, template

DAEMON_SET = Resource("apps.kruise.io", "v1beta1", "daemonsets", "DaemonSet")


def of(name: str, **images: str) -> ControllerRevision:
    return revision(template(*(container(key, image) for key, image in images.items())), f"ads-{name}")


NEW = of("new", a="a:2", b="b:1")


def planned(*old: ControllerRevision, **settings: Any) -> list[Create | Patch]:
    builder = PlanBuilder()
    owner = ObjectMeta(name="ads", namespace="ns", uid="u")
    pods = LabelSelector(match_labels={"app": "ads"})
    pulls = ImagePulls(resource=DAEMON_SET, metadata=owner, selector=pods, codec=CODEC, update=NEW, old=old, **settings)
    plan_pulls(pulls, builder)
    return [action for stage in builder.stages for (action,) in stage.chains if isinstance(action, Create | Patch)]


@pytest.mark.parametrize(
    ("old", "pulled"),
    [
        ([], ["ads-new-a", "ads-new-b"]),
        ([of("x", a="a:1", b="b:1")], ["ads-new-a"]),
        ([of("x", a="a:2", b="b:1"), of("y", a="a:2", b="b:0")], ["ads-new-b"]),
        ([of("x", a="a:2")], ["ads-new-b"]),
        ([of("x", a="a:2", b="b:1")], []),
    ],
    ids=["the first revision", "one image changed", "changed since any of them", "a new container", "none"],
)
def test_images_that_some_pod_does_not_run_are_pulled(old: list[ControllerRevision], pulled: list[str]) -> None:
    *jobs, mark = planned(*old)
    assert [job.name for job in jobs] == pulled
    assert mark.body == {"metadata": {"labels": {"apps.kruise.io/pre-predownload-created": "true"}}}


def test_a_job_belongs_to_its_workload_and_asks_for_its_other_pods() -> None:
    job, *_ = planned(parallelism="20%", timeout_seconds=9)
    assert job.body["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    assert job.body["spec"]["podSelector"] == {
        "matchLabels": {"app": "ads"},
        "matchExpressions": [{"key": "controller-revision-hash", "operator": "NotIn", "values": ["ads-new", "new"]}],
    }
    assert (job.body["spec"]["parallelism"], job.body["spec"]["pullPolicy"]["timeoutSeconds"]) == ("20%", 9)


@pytest.mark.parametrize(
    ("label", "decided"),
    [
        ("apps.kruise.io/pre-predownload-created", True),
        ("apps.kruise.io/image-predownload-ignored", True),
        ("x", False),
    ],
)
def test_a_revision_says_whether_its_images_were_seen_to(label: str, decided: bool) -> None:
    assert is_decided(revision(template(), labels={label: "true"})) is decided


def test_what_is_not_worth_it_is_marked_too() -> None:
    builder = PlanBuilder()
    plan_no_pulls(NEW, builder)
    (stage,) = builder.stages
    ((mark,),) = stage.chains
    assert isinstance(mark, Patch)
    assert (mark.name, stage.stop_on_failure) == ("ads-new", False)
    assert mark.body == {"metadata": {"labels": {"apps.kruise.io/image-predownload-ignored": "true"}}}
