"""Changes that wake jobs (imagepull.md §5.1): tag by tag, or a busy cluster would plan all day."""

from typing import Any

import pytest

from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.mirror.table import Table
from flotilla_jobs.imagepull.controller import JOBS as WATCH
from flotilla_jobs.imagepull.triggers import INDEXES, Triggers
from tests.testkit.documents import Json
from tests.unit.imagepull.build import copy_of, entry, job, list_job, node_image, pod, tag

JOBS = [
    job("all"),
    job("other-tag", image="nginx:2"),
    job("other-image", image="redis"),
    job("labelled", selector={"matchLabels": {"pool": "a"}}),
    job("named", selector={"names": ["n2"]}),
    job("pods", podSelector={"matchLabels": {"app": "web"}}),
    job("over", status={"completionTime": "2026-01-01T00:00:00Z"}),
    job("unreadable", image="No Image"),
    job("secret", image="redis", pullSecrets=["s1"]),
    job("child", image="redis", meta={"ownerReferences": [{"apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ImageListPullJob", "name": "L", "uid": "uid-L", "controller": True}]}),
]  # fmt: skip


@pytest.fixture
def triggers() -> Triggers:
    table = Table[ImagePullJob](WATCH.all_indexes)
    for one in JOBS:
        table.apply(one)
    return Triggers(table)


def names(keys: set[tuple[str, str]]) -> set[str]:
    return {name for _, name in keys}


PLAIN = node_image("n1", [tag("x")])
LABELLED = {"pool": "a"}
OF_IMAGE = {"all", "pods"}


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(PLAIN, node_image("n1", [tag("x", version=1)]), OF_IMAGE, id="the tag changed"),
        pytest.param(PLAIN, node_image("n1", [tag("x")], [entry("Pulling")]), OF_IMAGE, id="its entry came"),
        pytest.param(
            node_image("n1", [tag("x")], [entry("Succeeded", name="2")]),
            node_image("n1", [tag("x")], [entry("Failed", name="2")]),
            {"other-tag"},
            id="an entry without its tag changed",
        ),
        pytest.param(
            PLAIN, node_image("n1", [tag("x"), tag("x", name="2")]), {"other-tag"}, id="another tag of the image came"
        ),
        pytest.param(PLAIN, node_image("n1"), OF_IMAGE | {"other-tag"}, id="the image vanished"),
        pytest.param(
            PLAIN,
            node_image("n1", [tag("x")], secrets=[{"namespace": "n", "name": "s"}]),
            OF_IMAGE | {"other-tag"},
            id="secrets changed",
        ),
        pytest.param(PLAIN, PLAIN, set(), id="nothing changed"),
        pytest.param(
            PLAIN, node_image("n1", [tag("x")], labels={"zone": "b"}), set(), id="a label that nobody asks for"
        ),
        pytest.param(PLAIN, node_image("n1", [tag("x")], labels=LABELLED), {"labelled"}, id="a label that matches"),
        pytest.param(node_image("n1", [tag("x")], labels=LABELLED), PLAIN, {"labelled"}, id="matches no longer"),
        pytest.param(
            None,
            PLAIN,
            {"all", "other-tag", "other-image", "pods", "unreadable", "secret", "child"},
            id="a node that appears",
        ),
        pytest.param(
            node_image("n2", labels=LABELLED),
            None,
            {"all", "other-tag", "other-image", "pods", "unreadable", "secret", "child", "labelled", "named"},
            id="a node that goes",
        ),
    ],
)
def test_node_images(triggers: Triggers, old: NodeImage | None, new: NodeImage | None, woken: set[str]):
    assert names(triggers.of_node_image(old, new)) == woken


BOUND = pod("p", "n1")


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, BOUND, {"pods"}, id="new and bound"),
        pytest.param(None, pod("p", ""), set(), id="not bound"),
        pytest.param(pod("p", ""), BOUND, {"pods"}, id="just bound"),
        pytest.param(BOUND, None, {"pods"}, id="gone"),
        pytest.param(BOUND, pod("p", "n1", phase="Failed"), {"pods"}, id="finished"),
        pytest.param(BOUND, pod("p", "n1", resourceVersion="2"), set(), id="nothing that matters"),
        pytest.param(BOUND, pod("p", "n1", labels={"app": "db"}), {"pods"}, id="matches no longer"),
        pytest.param(None, pod("p", "n1", labels={"app": "db"}), set(), id="does not match"),
        pytest.param(None, pod("p", "n1", namespace="other"), set(), id="another namespace"),
    ],
)
def test_pods(triggers: Triggers, old: Any, new: Any, woken: set[str]):
    assert names(triggers.of_pod(old, new)) == woken


def test_secrets_and_lists(triggers: Triggers):
    assert names(triggers.of_source(("ns", "s1"))) == {"secret"}
    assert triggers.of_source(("other", "s1")) == set()
    assert triggers.of_copy(copy_of("s1", "ns/a"), copy_of("s1", "ns/b")) == {("ns", "a"), ("ns", "b")}
    running, over = list_job("x"), list_job("x", status={"completionTime": "2026-01-01T00:00:00Z"})
    for old, new in ((None, running), (running, over), (running, None)):
        assert names(triggers.of_ended_list(old, new)) == {"child"}
    assert triggers.of_ended_list(running, running) == triggers.of_ended_list(over, over) == set()
    assert triggers.sources(lambda *_: True) == {("ns", "s1"): {"uid-secret"}}
    assert triggers.sources(lambda *_: False) == {}


def test_a_selector_written_past_admission_wakes_nobody():
    broken: Json = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
    table = Table[ImagePullJob](INDEXES)
    table.apply(job("nodes", selector=broken))
    table.apply(job("by-pods", podSelector=broken))
    triggers = Triggers(table)
    assert names(triggers.of_node_image(None, PLAIN)) == {"by-pods"}
    assert triggers.of_pod(None, BOUND) == set()
