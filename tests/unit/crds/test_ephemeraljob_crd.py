"""The CRD of EphemeralJob: fields (ephemeraljob.md §1, §2)."""

from flotilla_common.api.kinds.ephemeraljob.kind import KIND
from tests.unit.crds.schemas import fields, restricted


def test_fields():
    known = fields(KIND, "v1alpha1")
    assert known[".spec"]["required"] == ["selector", "template"]
    assert known[".spec.template"]["required"] == ["ephemeralContainers"]
    assert known[".spec.template.ephemeralContainers[]"]["x-kubernetes-preserve-unknown-fields"] is True
    assert restricted(known) == []
