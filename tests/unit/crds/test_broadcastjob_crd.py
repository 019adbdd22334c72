"""The CRD of BroadcastJob: fields (broadcastjob.md §1, §2)."""

from flotilla_common.api.kinds.broadcastjob.kind import KIND
from tests.unit.crds.schemas import fields, restricted, schema_of


def test_fields():
    assert schema_of(KIND, "v1alpha1") == schema_of(KIND, "v1beta1")
    known = fields(KIND, "v1beta1")
    assert known[".spec"]["required"] == ["template"]
    assert known[".status"]["required"] == ["active", "desired", "failed", "phase", "succeeded"]
    assert known[".spec.parallelism"]["x-kubernetes-int-or-string"] is True
    assert known[".spec.template"]["x-kubernetes-preserve-unknown-fields"] is True
    assert ".spec.completionPolicy.backoffLimit" not in known
    assert restricted(known) == []
