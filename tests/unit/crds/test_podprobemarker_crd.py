"""The CRDs of PodProbeMarker and NodePodProbe: fields (podprobemarker.md §1, §2)."""

from flotilla_common.api.kinds.nodepodprobe.kind import KIND as NODE_POD_PROBES
from flotilla_common.api.kinds.podprobemarker.kind import KIND as MARKERS
from tests.unit.crds.schemas import fields, restricted


def test_fields_of_markers():
    known = fields(MARKERS, "v1alpha1")
    assert known[".spec"]["required"] == ["probes", "selector"]
    assert known[".spec.probes[]"]["required"] == ["containerName", "name", "probe"]
    assert known[".status"]["required"] == ["observedGeneration"]
    probe = ".spec.probes[].probe"
    assert known[f"{probe}.httpGet.port"]["x-kubernetes-int-or-string"]
    assert known[f"{probe}.terminationGracePeriodSeconds"]["format"] == "int64"
    assert {path for path in known if path.startswith(f"{probe}.grpc")}
    assert restricted(known) == []


def test_fields_of_node_probes():
    known = fields(NODE_POD_PROBES, "v1alpha1")
    assert known[".spec.podProbes[]"]["required"] == ["IP", "name", "namespace", "uid"]
    assert known[".spec.podProbes[].probes[]"]["required"] == ["containerName", "name", "probe"]
    assert known[".status.podProbeStatuses[].probeStates[]"]["required"] == ["name", "state"]
