"""Subjects: Kubernetes names as NATS tokens."""

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Affiliation, Interest
from tests.support.fake_bus import matches

OWNED = Affiliation("CloneSet_apps_kruise_io", "17", "-")
FREE = Affiliation("-", "-", "sidecars")


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (subjects.kube(POD, "default", "web-0"), "kube.v1.core.pods.default.web-0"),
        (subjects.kube(POD, "a", "with.dots.x"), "kube.v1.core.pods.a.with_dots_x"),
        (subjects.kube(NODE, "", "node-1.example"), "kube.v1.core.nodes._.node-1_example"),
        (subjects.kube(CLONE_SET, "a", "b"), "kube.v1.apps_kruise_io.clonesets.a.b"),
        (subjects.pod("shop", "web-x", OWNED), "kube.v1.core.pods.shop.web-x.CloneSet_apps_kruise_io.17.-"),
        (subjects.pod("shop", "a.b", FREE), "kube.v1.core.pods.shop.a_b.-.-.sidecars"),
        (subjects.kube_object(POD, "shop", "a.b"), "kube.v1.core.pods.shop.a_b.*.*.*"),
        (subjects.kube_object(CLONE_SET, "a", "b"), "kube.v1.apps_kruise_io.clonesets.a.b"),
        (subjects.kube_object(NODE, "", "n.x"), "kube.v1.core.nodes._.n_x"),
        (subjects.kube_namespace(POD, "shop"), "kube.v1.core.pods.shop.>"),
        (subjects.kube_filter(POD), "kube.v1.core.pods.>"),
        (subjects.kube_marker(POD), "kube.v1.core.pods"),
        (subjects.kube_stream(CLONE_SET).name, "kube_apps_kruise_io_clonesets"),
        (subjects.node_object("n.example", POD, "a", "b.c"), "node.v1.n_example.pods.a.b_c"),
        (subjects.node_filter("n", POD), "node.v1.n.pods.>"),
        (subjects.node_marker(POD), "node.v1._.pods"),
        (subjects.node_marker(POD, "n.example"), "node.v1.n_example.pods"),
        (subjects.report("n.example", "pods", "a", "b"), "report.v1.n_example.pods.a.b"),
        (subjects.report("n", "nodeimages", "", "n"), "report.v1.n.nodeimages._.n"),
        (subjects.node_inbox("n.example"), "_INBOX_node.n_example"),
    ],
)
def test_subjects(made: str, wanted: str) -> None:
    assert made == wanted


@pytest.mark.parametrize("named", [("n.example", "a", "b.c"), ("n", "", "n")])
def test_a_report_names_its_node_and_object(named: tuple[str, str, str]) -> None:
    assert subjects.reporter(subjects.report(named[0], "pods", *named[1:])) == named


@pytest.mark.parametrize(
    ("subject", "node"),
    [("node.v1.n_example.pods", "n.example"), ("node.v1._.pods", ""), ("node.v1.n.pods.x.y", None)],
    ids=["a node's", "the writer's own", "a copy"],
)
def test_whose_marker_it_is(subject: str, node: str | None) -> None:
    assert subjects.marked_node(subject) == node


@pytest.mark.parametrize(
    ("inbox", "node"), [("_INBOX_node.n_example.x1", "n.example"), ("_INBOX.x1", ""), ("_INBOX_nodes.n.x", "")]
)
def test_whose_inbox_it_is(inbox: str, node: str) -> None:
    assert subjects.inbox_node(inbox) == node


@pytest.mark.parametrize(
    ("subject", "part", "key"),
    [
        (subjects.pod("shop", "a.b", OWNED), "kube.v1.core.pods.shop.a_b", ("shop", "a.b")),
        ("kube.v1.core.pods.shop.a_b", "kube.v1.core.pods.shop.a_b", ("shop", "a.b")),
        (subjects.kube(CLONE_SET, "a", "b"), "kube.v1.apps_kruise_io.clonesets.a.b", ("a", "b")),
        (subjects.kube(NODE, "", "n.x"), "kube.v1.core.nodes._.n_x", ("", "n.x")),
    ],
    ids=["a pod", "a pod of an earlier release", "another object", "cluster-scoped"],
)
def test_which_object_a_subject_is_about(subject: str, part: str, key: tuple[str, str]) -> None:
    assert subjects.object_part(subject) == part
    assert subjects.object_key(subject) == key


@pytest.mark.parametrize("subject", [subjects.kube_marker(POD), "act.v1.x"])
def test_other_subjects_are_about_no_object(subject: str) -> None:
    with pytest.raises(ValueError, match="not enough values"):
        subjects.object_key(subject)


@pytest.mark.parametrize(
    ("resource", "affiliated"),
    [(POD, True), (NODE, False), (CLONE_SET, False)],
    ids=lambda one: getattr(one, "plural", ""),
)
def test_only_subjects_of_pods_say_whose_they_are(resource: Resource, affiliated: bool) -> None:
    assert subjects.affiliated(resource) is affiliated


@pytest.mark.parametrize(
    ("interest", "filtered", "picked"),
    [
        (Interest(), "kube.v1.core.pods.*.*.*.*.*", True),
        (Interest(namespace="shop"), "kube.v1.core.pods.shop.*.*.*.*", True),
        (Interest(namespace="shop-a"), "kube.v1.core.pods.shop-a.*.*.*.*", False),
        (Interest(owner=OWNED.owner), "kube.v1.core.pods.*.*.CloneSet_apps_kruise_io.*.*", True),
        (Interest(owner=OWNED.owner, bucket="17"), "kube.v1.core.pods.*.*.CloneSet_apps_kruise_io.17.*", True),
        (Interest(owner=OWNED.owner, bucket="18"), "kube.v1.core.pods.*.*.CloneSet_apps_kruise_io.18.*", False),
        (Interest(owner="-"), "kube.v1.core.pods.*.*.-.*.*", False),
        (Interest(trait="sidecars"), "kube.v1.core.pods.*.*.*.*.sidecars", False),
    ],
    ids=["all", "namespace", "another namespace", "owners", "bucket", "another bucket", "no owner", "trait"],
)
def test_the_filter_of_an_interest_matches_the_pods_that_it_covers(
    interest: Interest, filtered: str, picked: bool
) -> None:
    assert subjects.interest_filter(interest) == filtered
    assert matches(filtered, subjects.pod("shop", "web-x", OWNED)) is picked
    assert interest.covers("shop", OWNED) is picked


@pytest.mark.parametrize(
    "followed",
    [subjects.kube_object(POD, "shop", "web-1"), subjects.kube_namespace(POD, "shop"), subjects.kube_filter(POD)],
)
@pytest.mark.parametrize("affiliation", [OWNED, FREE])
def test_a_pod_is_under_the_filters_of_its_name_and_namespace(followed: str, affiliation: Affiliation) -> None:
    assert matches(followed, subjects.pod("shop", "web-1", affiliation))
    assert not matches(followed, subjects.kube_marker(POD))
    assert matches(followed, subjects.pod("shop", "web-2", affiliation)) is followed.endswith(">")


def test_a_marker_of_an_earlier_release_has_the_first_layout() -> None:
    marker = msgspec.json.decode(b'{"epoch":"0.a","state":"synced","rv":"5"}', type=subjects.Marker)
    assert marker.layout == 0 < subjects.LAYOUT
