"""Clearing managedFields with the main write of an in-place update (docs/adr/0006)."""

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import FieldOwner, ObjectMeta
from flotilla_common.control.plan import Intent
from flotilla_common.workload.podedit import PodEdit

UPDATE, APPLY = FieldOwner(manager="kubelet", operation="Update"), FieldOwner(manager="me", operation="Apply")


@pytest.mark.parametrize(
    ("owners", "cleared"),
    [([], True), ([UPDATE], True), ([UPDATE, APPLY], False)],
    ids=["not known", "updates only", "somebody applies"],
)
def test_field_owners_are_cleared_unless_somebody_applies(owners: list[FieldOwner], cleared: bool) -> None:
    edit = PodEdit(Pod(metadata=ObjectMeta(name="a", uid="u", managed_fields=owners)), Intent.REFRESH, "test")
    edit.set_image("nginx", "nginx:mainline")
    edit.drop_field_owners()
    (patch,) = edit.chain()
    assert (patch.body.get("metadata", {}).get("managedFields") == [{}]) is cleared
