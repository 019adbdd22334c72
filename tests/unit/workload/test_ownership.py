"""Owner references and claims, for all kinds of owners and dependents (common.md §1, §7.8; statefulset.md §4.9)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import ControllerRevision, PersistentVolumeClaim
from flotilla_common.api.meta import ObjectMeta, OwnerReference
from flotilla_common.api.resources import CLAIM, POD, REVISION, Resource
from flotilla_common.control.plan import Intent, Patch
from flotilla_common.workload.claims import claim_templates, hand_over
from flotilla_common.workload.ownership import adopt, owner_reference, release
from tests.testkit.documents import owned_by
from tests.testkit.workloads import raw
from tests.unit.workload.build import patches

STATEFUL_SET = Resource("apps.kruise.io", "v1beta1", "statefulsets", "StatefulSet")
OWNER = ObjectMeta(name="web", namespace="ns", uid="u")
REFERENCE = owned_by(STATEFUL_SET, "web", "u", blockOwnerDeletion=True)
OTHER = OwnerReference(kind="Node", name="n", uid="n")


def revision(*references: OwnerReference) -> ControllerRevision:
    meta = ObjectMeta(name="r", namespace="ns", uid="r", resource_version="3", owner_references=list(references))
    return ControllerRevision(metadata=meta)


def references_of(patch: Patch) -> Any:
    assert (patch.resource_version, patch.uid) == ("3", "r")
    return patch.body["metadata"]["ownerReferences"]


def test_the_reference_of_a_controller() -> None:
    assert owner_reference(STATEFUL_SET, OWNER) == REFERENCE
    assert owner_reference(POD, ObjectMeta(name="p", uid="x"))["apiVersion"] == "v1"


@pytest.mark.parametrize("others", [[], [OTHER]], ids=["alone", "beside another"])
def test_any_object_is_released_and_adopted(others: list[OwnerReference]) -> None:
    ours = OwnerReference(kind="StatefulSet", name="web", uid="u")
    kept = [msgspec.to_builtins(other) for other in others]
    ((released,),) = release("u", REVISION, [revision(*others, ours)])
    ((adopted,),) = adopt(REFERENCE, REVISION, [revision(ours, *others)])
    (first,), (second,) = patches((released,)), patches((adopted,))
    assert (first.resource, first.cause, references_of(first)) == (REVISION, "labels left the selector", kept or None)
    assert references_of(second) == [*kept, REFERENCE]
    assert second.cause == "take over the controllerrevision"


def test_a_claim_gets_another_controller() -> None:
    held = [OTHER, OwnerReference(kind="StatefulSet", uid="u", controller=True)]
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data-web-0", uid="r", resource_version="3", owner_references=held)
    )
    patch = hand_over(claim, ObjectMeta(name="web-0", uid="p"))
    assert [one["uid"] for one in references_of(patch)] == ["n", "p"]
    assert (patch.resource, patch.intent, patch.pods) == (CLAIM, Intent.CLAIM, ("web-0",))


def test_claims_of_a_kind_with_ordinals() -> None:
    document = {"metadata": {"name": "data", "labels": {"a": "1", "b": "1"}}, "spec": {"x": 1}}
    (template,) = claim_templates([raw(document), raw({"metadata": {}})])
    assert template.volume("web", "0") == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "data-web-0", "readOnly": False},
    }
    assert template.claim("web", "0", "ns", {"b": "2"}) == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-web-0", "namespace": "ns", "labels": {"a": "1", "b": "2"}, "ownerReferences": []},
        "spec": {"x": 1},
    }
