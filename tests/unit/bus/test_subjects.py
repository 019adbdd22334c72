"""Subjects: Kubernetes names as NATS tokens."""

import pytest

from flotilla_common.api.resources import CLONE_SET, NODE, POD
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
    ],
)
def test_subjects(made: str, wanted: str) -> None:
    assert made == wanted
