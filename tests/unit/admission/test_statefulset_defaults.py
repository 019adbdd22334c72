"""StatefulSet defaults in both versions (statefulset.md §3.1), and OpenKruise's stored form of the same manifests."""

import json
from typing import Any

import pytest

from flotilla_common.api.kinds.statefulset.api import default_statefulset
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from tests.unit.workload import openkruise

GATES = Gates.parse("")
RESIZE = Gates.parse("StatefulSetAutoResizePVCGate=true")
KEPT = {"whenDeleted": "Retain", "whenScaled": "Retain"}
ROLLING = {"partition": 0, "maxUnavailable": 1, "minReadySeconds": 0, "podUpdatePolicy": "ReCreate"}


def statefulset(version: str = V1BETA1, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "StatefulSet", "spec": {"template": {"spec": {}}} | spec}


def defaulted(document: dict[str, Any], old: dict[str, Any] | None = None, gates: Gates = GATES) -> dict[str, Any]:
    return default_statefulset(document, old, gates)["spec"]


@pytest.mark.parametrize("version", [V1ALPHA1, V1BETA1])
def test_what_both_versions_have(version: str) -> None:
    spec = defaulted(statefulset(version))
    shared = ("podManagementPolicy", "replicas", "revisionHistoryLimit", "updateStrategy")
    assert [spec[key] for key in shared] == ["OrderedReady", 1, 10, {"type": "RollingUpdate", "rollingUpdate": ROLLING}]
    zero = defaulted(statefulset(version, replicas=0, revisionHistoryLimit=0, podManagementPolicy="Parallel"))
    assert [zero[key] for key in shared[:3]] == ["Parallel", 0, 0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"type": "OnDelete"}, {"type": "OnDelete"}, id="OnDelete gets no numbers"),
        pytest.param({"type": ""}, {"type": "RollingUpdate", "rollingUpdate": ROLLING}, id="empty type"),
        pytest.param(
            {"rollingUpdate": {"maxUnavailable": "20%", "partition": 2, "podUpdatePolicy": "", "paused": True}},
            {
                "type": "RollingUpdate",
                "rollingUpdate": ROLLING | {"maxUnavailable": "20%", "partition": 2, "paused": True},
            },
            id="what is given stays",
        ),
        pytest.param(
            {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
            {"type": "RollingUpdate", "rollingUpdate": ROLLING | {"podUpdatePolicy": "InPlaceIfPossible"}},
            id="in place",
        ),
        pytest.param({"type": "Other"}, {"type": "Other"}, id="unknown type"),
    ],
)
def test_update_strategy(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaulted(statefulset(updateStrategy=given))["updateStrategy"] == expected


def test_in_place_updates_add_no_readiness_gate() -> None:
    spec = defaulted(statefulset(updateStrategy={"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}))
    assert "readinessGates" not in spec["template"]["spec"]


@pytest.mark.parametrize(
    ("version", "gates", "given", "expected"),
    [
        pytest.param(V1BETA1, "", {}, (KEPT, None), id="retention by default"),
        pytest.param(
            V1BETA1, "", {"whenScaled": "Delete"}, (KEPT | {"whenScaled": "Delete"}, None), id="the rest of the policy"
        ),
        pytest.param(V1BETA1, "StatefulSetAutoDeletePVC=false", {}, (None, None), id="without the gate"),
        pytest.param(
            V1BETA1, "StatefulSetAutoResizePVCGate=true", {}, (KEPT, {"type": "OnDelete"}), id="claims that may grow"
        ),
        pytest.param(V1ALPHA1, "StatefulSetAutoResizePVCGate=true", {}, (None, None), id="v1alpha1 has neither"),
    ],
)
def test_claims(version: str, gates: str, given: dict[str, Any], expected: tuple[Any, Any]) -> None:
    document = statefulset(version, **({"persistentVolumeClaimRetentionPolicy": given} if given else {}))
    spec = defaulted(document, gates=Gates.parse(gates))
    assert (spec.get("persistentVolumeClaimRetentionPolicy"), spec.get("volumeClaimUpdateStrategy")) == expected


def test_templates() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "0.0001"}}}}]
    spec = defaulted(statefulset(volumeClaimTemplates=claims))
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["status"] == {"phase": "Pending"}
    assert claim["spec"] == {"resources": {"requests": {"storage": "1m"}}}


@pytest.mark.parametrize(
    ("template", "gates", "touched"),
    [
        pytest.param({"spec": {}}, "", False, id="unchanged"),
        pytest.param({"spec": {"hostNetwork": True}}, "", True, id="changed"),
        pytest.param({"spec": {"hostNetwork": True}}, "TemplateNoDefaults=true", False, id="no defaults at all"),
    ],
)
def test_templates_of_an_update(template: dict[str, Any], gates: str, touched: bool) -> None:
    new = statefulset(template=template, volumeClaimTemplates=[{}])
    spec = defaulted(new, statefulset(), Gates.parse(gates))
    assert ("restartPolicy" in spec["template"]["spec"], "status" in spec["volumeClaimTemplates"][0]) == (touched,) * 2


def test_unknown_fields_and_the_request_survive() -> None:
    document = statefulset(future={"a": 1})
    assert defaulted(document)["future"] == {"a": 1}
    assert "replicas" not in document["spec"]


def test_what_is_stored_has_all_defaults_already() -> None:
    for stored in openkruise.documents("statefulsets"):
        assert default_statefulset(stored, None, RESIZE) == stored


@pytest.mark.parametrize(("name", "image"), [("asts", "nginx:1.22.0"), ("ordered", "nginx:1.20")])
def test_the_manifest_becomes_what_openkruise_stored(name: str, image: str) -> None:
    (stored,) = (one for one in openkruise.documents("statefulsets") if one["metadata"]["name"] == name)
    applied = json.loads(stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    applied["spec"]["template"]["spec"]["containers"][0]["image"] = image  # which a JSON patch had set
    assert defaulted(applied, gates=RESIZE) == stored["spec"]
    sent = stored | {"spec": stored["spec"] | applied["spec"]}  # nothing changes when it is applied again
    sent["spec"]["updateStrategy"] = stored["spec"]["updateStrategy"]
    assert default_statefulset(sent, stored, RESIZE) == stored
