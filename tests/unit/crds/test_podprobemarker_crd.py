"""The CRDs of PodProbeMarker and NodePodProbe: names, fields (podprobemarker.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.kinds.nodepodprobe.kind import KIND as NODE_POD_PROBES
from flotilla_common.api.kinds.podprobemarker.kind import KIND as MARKERS
from tests.unit.crds.test_crds import walk


def known_of(kind: Kind) -> dict[str, Any]:
    (version,) = definition(kind)["spec"]["versions"]
    return dict(walk(version["schema"]["openAPIV3Schema"]))


@pytest.mark.parametrize(
    ("kind", "plural", "scope"),
    [(MARKERS, "podprobemarkers", "Namespaced"), (NODE_POD_PROBES, "nodepodprobes", "Cluster")],
)
def test_names_scope_and_version(kind: Kind, plural: str, scope: str):
    spec = definition(kind)["spec"]
    assert spec["names"] == {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": plural,
        "singular": kind.name.lower(),
    }
    assert (spec["group"], spec["scope"], spec["conversion"]) == ("apps.kruise.io", scope, {"strategy": "None"})
    (version,) = spec["versions"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"] == []


def test_fields_of_markers():
    known = known_of(MARKERS)
    assert known[".spec"]["required"] == ["probes", "selector"]
    assert known[".spec.probes[]"]["required"] == ["containerName", "name", "probe"]
    assert known[".status"]["required"] == ["observedGeneration"]
    probe = ".spec.probes[].probe"
    assert known[f"{probe}.httpGet.port"]["x-kubernetes-int-or-string"]
    assert known[f"{probe}.terminationGracePeriodSeconds"]["format"] == "int64"
    assert {path for path in known if path.startswith(f"{probe}.grpc")}
    assert [path for path, node in known.items() if {"enum", "minimum", "maximum", "default"} & node.keys()] == []


def test_fields_of_node_probes():
    known = known_of(NODE_POD_PROBES)
    assert known[".spec.podProbes[]"]["required"] == ["IP", "name", "namespace", "uid"]
    assert known[".spec.podProbes[].probes[]"]["required"] == ["containerName", "name", "probe"]
    assert known[".status.podProbeStatuses[].probeStates[]"]["required"] == ["name", "state"]
