"""A DaemonSet as OpenKruise left it in the middle of a rollout: planned, nothing is written but what is due."""

from datetime import UTC, datetime

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.daemonset.types import DaemonSet
from flotilla_common.control.plan import Create, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_daemonset.daemonset.plan import plan
from flotilla_daemonset.daemonset.snapshot import DaemonSetSnapshot
from tests.testkit.documents import Json, decoded
from tests.unit.daemonset.build import node
from tests.unit.workload.openkruise import owned, stored, stored_revisions, with_image

NOW = datetime(2026, 11, 23, 8, 0, 0, tzinfo=UTC)


def planned(document: Json, gates: str = "") -> Plan:
    pods = owned("pods", "ads", Pod)
    return plan(
        DaemonSetSnapshot(
            daemonset=decoded(document, DaemonSet),
            nodes=[node("node1"), node("node2"), node("node3")],
            pods=pods,
            taken_names=frozenset(pod.metadata.name for pod in pods),
            revisions=stored_revisions("DaemonSet", "ads"),
            gates=Gates.parse(gates),
        ),
        NOW,
    )


@pytest.mark.parametrize("gates", ["", "AllAlpha=true,AllBeta=true,EnableExternalCerts=false"])
def test_what_rests_is_left_alone(gates: str) -> None:
    result = planned(stored("daemonsets"), gates)
    assert result.actions == []
    assert result.status is None
    assert result.events == ()


def test_the_status_comes_out_as_it_was() -> None:
    document = stored("daemonsets")
    golden, document["status"] = document["status"], {}
    patch = planned(document).status
    assert patch is not None
    assert {field: value for field, value in patch.body["status"].items() if value is not None} == golden


def test_the_rollout_goes_on_where_it_stood() -> None:
    document = stored("daemonsets")
    document["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = 0
    first, second = planned(document).actions
    assert isinstance(first, Patch)
    assert isinstance(second, Patch)
    assert (first.name, first.subresource) == ("ads-hrdpf", "status")
    assert second.body["metadata"]["labels"] == {"controller-revision-hash": "5649fd9f5b"}


def test_a_rollback_uses_the_revision_that_openkruise_made() -> None:
    first, *rest = planned(with_image(stored("daemonsets"), "nginx:1.20")).actions
    assert isinstance(first, Patch)
    assert (first.name, first.body["revision"]) == ("ads-7dc86fccf6", 5)
    assert {action.name for action in rest} == {"ads-t6cb5"}


def test_a_new_image_makes_a_new_revision() -> None:
    first, *rest = planned(with_image(stored("daemonsets"), "nginx:1.23")).actions
    assert isinstance(first, Create)
    assert first.body["metadata"]["labels"].keys() == {"app", "controller-revision-hash"}
    assert {action.resource.kind for action in rest} == {"Pod"}


def test_a_template_in_the_typed_form_of_the_older_version_is_the_same() -> None:
    """`resources: {}` has no meaning."""
    document, alpha = stored("daemonsets"), stored("daemonsets.v1alpha1")
    assert document["spec"]["template"] != alpha["spec"]["template"]
    document["spec"]["template"] = alpha["spec"]["template"]
    assert planned(document).actions == []
