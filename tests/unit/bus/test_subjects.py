"""Subjects: Kubernetes names as NATS tokens."""

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import NODE, POD
from flotilla_common.bus import subjects


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (subjects.kube(POD, "default", "web-0"), "kube.v1.core.pods.default.web-0"),
        (subjects.kube(POD, "a", "with.dots.x"), "kube.v1.core.pods.a.with_dots_x"),
        (subjects.kube(NODE, "", "node-1.example"), "kube.v1.core.nodes._.node-1_example"),
        (subjects.kube(CLONE_SET, "a", "b"), "kube.v1.apps_kruise_io.clonesets.a.b"),
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
