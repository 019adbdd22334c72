"""Odd or many copies of pull secrets, and the order of nodes with little information (imagepull.md §5.5, §6)."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.mirror.table import Table
from flotilla_jobs.imagepull.secret_copies import references_of
from flotilla_jobs.imagepull.selection import node_order
from flotilla_jobs.imagepull.triggers import INDEXES, Triggers
from tests.testkit.documents import Json, decoded
from tests.unit.imagepull.build import (
    NOW,
    begun,
    copy_of,
    entry,
    fresh,
    job,
    node_image,
    planned,
    pod,
    pulling,
    secret,
    summary,
    tag,
    written_tag,
)
from tests.unit.imagepull.test_secrets import bodies

TWO: Json = {"pullSecrets": ["s1", "s2"], "status": begun()}
COPY = {"namespace": "kruise-daemon-config", "name": "s1-copy", "mode": "batch"}
UNMARKED = secret("odd", "kruise-daemon-config")
OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "C", "uid": "c", "controller": True}


def created(**members: Any) -> Json:
    """Return the copy that a job creates of one source."""
    source = members.pop("source", secret())
    return bodies(planned(job(pullSecrets=["s1"], status=begun()), fresh("n1"), sources={"s1": source}, **members))[0]


def test_one_missing_source_does_not_keep_the_next_from_being_copied():
    plan = planned(job(**TWO), fresh("n1"), sources={"s1": None, "s2": secret("s2")})
    assert summary(plan)[0].startswith("create Secret s2-")
    assert summary(plan)[1:] == ["push n1"]


def test_a_copy_cannot_be_changed_where_its_source_cannot():
    assert created(source=msgspec.structs.replace(secret(), immutable=True))["immutable"] is True
    assert "immutable" not in created()


def test_a_long_name_is_cut_to_what_a_name_may_have():
    name = created(source=secret("s" * 253))["metadata"]["name"]
    assert len(name) == 253
    assert name.startswith("s" * 246 + "-")


def test_names_that_are_taken_again_and_again_are_avoided():
    taken: set[str] = set()
    for _ in range(4):
        name = created(taken=frozenset(taken))["metadata"]["name"]
        assert name not in taken
        taken.add(name)


def test_of_many_users_one_leaves():
    plan = planned(job("B", status=begun()), fresh("n1"), copies=[copy_of("s1", "ns/C", "ns/B", "ns/A")])
    assert bodies(plan)[0] == {"metadata": {"annotations": {"imagepulljobs.kruise.io/references": "ns/A,ns/C"}}}


def test_a_secret_without_marks_is_nobodys_copy():
    assert references_of(UNMARKED) == []
    assert summary(planned(job(status=begun()), fresh("n1"), copies=[UNMARKED])) == ["push n1"]


@pytest.mark.parametrize("wanted", [[], ["s1"]], ids=["none", "another"])
def test_a_copy_that_does_not_say_of_what_is_released(wanted: list[str]):
    annotations = {"imagepulljobs.kruise.io/references": "ns/J"}
    odd = secret("odd", "kruise-daemon-config", annotations=annotations)
    one = job(pullSecrets=wanted, status=begun())
    plan = planned(one, fresh("n1"), sources={"s1": secret()}, copies=[odd])
    assert summary(plan)[0] == "delete Secret odd"


def test_a_copy_without_a_mode_is_referred_to_without_one():
    annotations = {key: value for key, value in copy_of("s1", "ns/J").metadata.annotations.items() if "mode" not in key}
    copy = secret("s1-copy", "kruise-daemon-config", annotations=annotations)
    plan = planned(job(pullSecrets=["s1"], status=begun()), fresh("n1"), sources={"s1": secret()}, copies=[copy])
    (reference,) = bodies(plan)[-1]["spec"]["images"]["nginx"]["pullSecrets"]
    assert reference == {"namespace": "kruise-daemon-config", "name": "s1-copy"}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({}, ["n1", "n2", "n3"], id="no strategy"),
        pytest.param({"rollingUpdate": {}}, ["n1", "n2", "n3"], id="neither priority nor scatter"),
        pytest.param(
            {"rollingUpdate": {"scatterStrategy": [{"key": "zone", "value": "a"}]}}, ["n1", "n3", "n2"], id="scatter"
        ),
    ],
)
def test_nodes_in_the_order_of_updates(strategy: Json, expected: list[str]):
    document = {
        "metadata": {"name": "C", "namespace": "ns", "uid": "c", "resourceVersion": "1"},
        "spec": {"updateStrategy": strategy},
    }
    clonesets = Table[CloneSet]()
    clonesets.apply(decoded(document, CloneSet))
    zones = {"p1": ("n1", "a"), "p2": ("n2", "a"), "p3": ("n3", "b"), "p4": ("n3", "b")}
    pods = [pod(name, node, labels={"zone": zone}) for name, (node, zone) in zones.items()]
    order = node_order(job(meta={"ownerReferences": [OWNER]}), pods, clonesets)
    assert sorted(order, key=lambda name: order[name]) == expected


def triggers(*jobs: ImagePullJob) -> Triggers:
    table = Table[ImagePullJob](INDEXES)
    for one in jobs:
        table.apply(one)
    return Triggers(table)


def woken(keys: set[tuple[str, str]]) -> set[str]:
    return {name for _, name in keys}


def test_one_write_that_changes_labels_and_several_tags_wakes_all_of_them():
    found = triggers(job("one"), job("two", image="nginx:2"), job("new", image="redis:1", selector={"names": ["n1"]}),
        job("labelled", image="busybox", selector={"matchLabels": {"pool": "a"}}))  # fmt: skip
    old = node_image("n1", [tag("x"), tag("x", name="2")])
    new = node_image("n1", [tag("x", version=1), tag("x", name="2", version=1)], labels={"pool": "a"})
    assert woken(found.of_node_image(old, new)) == {"one", "two", "labelled"}


def test_a_node_that_is_about_to_go_concerns_all_and_then_only_what_changes():
    found = triggers(job("one"), job("other", image="redis"))
    going = {"deletionTimestamp": "2026-03-01T11:00:00Z"}
    held = node_image("n1", [tag("x")])
    assert woken(found.of_node_image(held, node_image("n1", [tag("x")], **going))) == {"one", "other"}
    leaving = node_image("n1", [tag("x")], [entry("Pulling")], **going)
    assert woken(found.of_node_image(node_image("n1", [tag("x")], **going), leaving)) == {"one"}


def test_jobs_that_are_over_wake_for_no_secret_and_no_label():
    over = {"completionTime": "2026-01-01T00:00:00Z"}
    labelled = {"matchLabels": {"pool": "a"}}
    found = triggers(
        job("over", pullSecrets=["s1"], selector=labelled, status=over),
        job("pods", podSelector={"matchLabels": {"a": "b"}}),
    )
    assert found.of_source(("ns", "s1")) == set()
    assert found.sources(lambda *_: True) == {}
    assert found.of_node_image(node_image("n1"), node_image("n1", labels={"pool": "a"})) == set()


def test_secrets_are_those_of_the_jobs_that_this_replica_serves():
    found = triggers(job("mine", pullSecrets=["s1"]), job("theirs", pullSecrets=["s2"]))
    assert found.sources(lambda namespace, name: (namespace, name) == ("ns", "mine")) == {("ns", "s1"): {"uid-mine"}}


def test_a_list_that_is_gone_wakes_nobody():
    assert triggers(job("one")).of_ended_list(None, None) == set()


def test_pods_that_come_and_go_without_a_node_are_nothing():
    found = triggers(job("pods", podSelector={"matchLabels": {"app": "web"}}))
    assert found.of_pod(None, pod("p", "", phase="Failed")) == set()


IMAGES = ["a", "b", "c", "d", "e", "f"]


def several(changed: str = "", *, without: str = "") -> NodeImage:
    """Return a NodeImage with one tag and its entry for each image."""
    images = {one: {"tags": [tag("x", version=int(one == changed))]} for one in IMAGES}
    statuses = {one: {"tags": [entry("Pulling")]} for one in IMAGES if one != without}
    metadata = {"name": "n1", "uid": "uid-n1", "resourceVersion": "7"}
    return decoded({"metadata": metadata, "spec": {"images": images}, "status": {"imageStatuses": statuses}}, NodeImage)


@pytest.mark.parametrize("image", IMAGES)
def test_of_many_images_the_one_that_changed_wakes_its_jobs(image: str):
    found = triggers(*(job(one, image=f"{one}:1.25") for one in IMAGES))
    assert woken(found.of_node_image(several(), several(image))) == {image}
    assert woken(found.of_node_image(several(), several(without=image))) == {image}


def test_of_two_tags_the_one_that_changed_wakes_its_jobs():
    found = triggers(job("one"), job("two", image="nginx:2"))
    held = [entry("Pulling"), entry("Pulling", name="2")]
    old, new = (node_image("n1", [tag("x"), tag("x", name="2", version=version)], held) for version in (0, 1))
    assert woken(found.of_node_image(old, new)) == {"two"}


def test_a_node_is_not_told_of_a_secret_twice():
    held = node_image("n1", [tag("X", name="1.24")], secrets=[COPY])
    plan = planned(
        job(pullSecrets=["s1"], status=begun()), [held], sources={"s1": secret()}, copies=[copy_of("s1", "ns/J")]
    )
    assert bodies(plan)[0]["spec"]["images"]["nginx"].keys() == {"tags"}


def test_limits_of_a_pull_are_those_of_its_job():
    policy = {"timeoutSeconds": 77, "backoffLimit": 7}
    written = written_tag(planned(job(pullPolicy=policy, status=begun()), fresh("n1")), "n1")["pullPolicy"]
    assert (written["timeoutSeconds"], written["backoffLimit"]) == (77, 7)
    kept = written["ttlSecondsAfterFinished"] - 77 * 7  # for as long as all tries may take, and some minutes more
    assert 300 <= kept < 600


def test_a_job_is_looked_at_once_a_second_at_most():
    policy = {"type": "Always", "activeDeadlineSeconds": 30}
    plan = planned(job(completionPolicy=policy, status=begun(29.5)), [pulling("n1")])
    assert plan.wake_at == NOW + timedelta(seconds=1)
