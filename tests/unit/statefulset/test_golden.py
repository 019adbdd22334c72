"""StatefulSets as OpenKruise left them in the middle of rollouts: planned, nothing is written but what is due."""

from datetime import UTC, datetime

import pytest

from flotilla_common.api.core import PersistentVolumeClaim, Pod
from flotilla_common.api.kinds.statefulset.types import StatefulSet
from flotilla_common.control.plan import Create, Delete, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_statefulset.statefulset.plan import plan
from flotilla_statefulset.statefulset.snapshot import StatefulSetSnapshot
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import codes
from tests.unit.workload.openkruise import owned, stored, stored_revisions, with_image

NOW = datetime(2026, 11, 23, 8, 0, 0, tzinfo=UTC)
SETS = ("asts", "ordered", "ud-asts-a-9m8ks", "ud-asts-b-drxkf")
GATES = ("", "StatefulSetAutoResizePVCGate=true,StatefulSetStartOrdinal=true,PreparingUpdateAsUpdate=true")
"""The default gates, and those that were on where the objects come from."""


def planned(document: Json, gates: str = "") -> Plan:
    name = document["metadata"]["name"]
    pods = owned("pods", name, Pod)
    claims = owned("persistentvolumeclaims", name, PersistentVolumeClaim)
    return plan(
        StatefulSetSnapshot(
            statefulset=decoded(document, StatefulSet),
            pods=pods,
            taken_names=frozenset(pod.metadata.name for pod in pods),
            claims={claim.metadata.name: claim for claim in claims},
            revisions=stored_revisions("StatefulSet", name),
            gates=Gates.parse(gates),
        ),
        NOW,
    )


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("name", SETS)
def test_what_rests_is_left_alone(name: str, gates: str):
    result = planned(stored("statefulsets", name), gates)
    assert result.stages == ()
    assert result.status is None
    assert result.events == ()


@pytest.mark.parametrize("name", SETS)
def test_the_status_comes_out_as_it_was(name: str):
    """It is computed from the current revision alone, which only the status has."""
    document = stored("statefulsets", name)
    golden, document["status"] = document["status"], {"currentRevision": document["status"]["currentRevision"]}
    patch = planned(document).status
    assert patch is not None
    assert {field: value for field, value in patch.body["status"].items() if value is not None} == golden


def test_the_rollout_goes_on_where_it_stood():
    """Two of four are updated, pod 1 is reserved: the others follow in place, two at a time."""
    document = stored("statefulsets", "asts")
    document["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = 0
    result = planned(document)
    updates = [action for action in result.actions if isinstance(action, Patch) and not action.subresource]
    assert [action.name for action in updates] == ["asts-2", "asts-0"]
    assert {update.body["metadata"]["labels"]["controller-revision-hash"] for update in updates} == {"asts-558b4c689b"}
    assert {action.resource.kind for action in result.actions} == {"Pod"}
    assert not [action for action in result.actions if isinstance(action, Delete)]


def test_its_partition_still_holds_the_rest():
    assert "Partition" in " ".join(codes(planned(stored("statefulsets", "asts"))))


def test_a_new_image_of_an_ordered_set_begins_at_the_top():
    result = planned(with_image(stored("statefulsets", "ordered"), "nginx:1.22.0"))
    first, *rest = result.actions
    assert isinstance(first, Create)
    assert (first.resource.kind, first.body["revision"]) == ("ControllerRevision", 4)
    assert [(type(action), action.name) for action in rest] == [(Delete, "ordered-2")]


def test_a_rollback_uses_the_revision_that_openkruise_made():
    result = planned(with_image(stored("statefulsets", "ordered"), "nginx:1.21"))
    first, *rest = result.actions
    assert isinstance(first, Patch)
    assert (first.name, first.body["revision"]) == ("ordered-7d4dfdcd44", 4)
    assert [(type(action), action.name) for action in rest] == [(Delete, "ordered-2")]


def test_scaled_in_a_claim_stays():
    """It stays owned by the StatefulSet, because it is deleted with that and not before."""
    document = stored("statefulsets", "asts")
    document["spec"]["replicas"] = 3
    result = planned(document)
    assert [(type(action), action.resource.kind, action.name) for action in result.actions] == [
        (Delete, "Pod", "asts-4")
    ]
