"""CloneSet defaults in both versions (cloneset.md §2, §3.1; webhooks.md §9, §11)."""

import copy
import json
from typing import Any

import pytest

from flotilla_common.api.kinds.cloneset.api import default_cloneset
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from tests.unit.workload import openkruise

GATES = Gates.parse("")
NUMBERS = {"partition": 0, "maxUnavailable": "20%", "maxSurge": 0}


def cloneset(version: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "CloneSet", "spec": {"template": {"spec": {}}} | spec}


def strategy(version: str, given: Any) -> Any:
    return default_cloneset(cloneset(version, updateStrategy=given), None, GATES)["spec"]["updateStrategy"]


@pytest.mark.parametrize("version", [V1ALPHA1, V1BETA1])
def test_numbers(version: str) -> None:
    spec = default_cloneset(cloneset(version), None, GATES)["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    zero = default_cloneset(cloneset(version, replicas=0, revisionHistoryLimit=0), None, GATES)["spec"]
    assert (zero["replicas"], zero["revisionHistoryLimit"]) == (0, 0)


@pytest.mark.parametrize(
    ("version", "given", "expected"),
    [
        pytest.param(V1ALPHA1, None, NUMBERS | {"type": "ReCreate"}, id="alpha"),
        pytest.param(
            V1ALPHA1,
            {"type": "InPlaceOnly", "partition": "90%"},
            NUMBERS | {"type": "InPlaceOnly", "partition": "90%", "inPlaceUpdateStrategy": {}},
            id="alpha in place",
        ),
        pytest.param(
            V1BETA1,
            {},
            {"type": "RollingUpdate", "rollingUpdate": NUMBERS | {"podUpdatePolicy": "ReCreate"}},
            id="beta",
        ),
        pytest.param(
            V1BETA1,
            {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 0, "maxSurge": 1}},
            {
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "podUpdatePolicy": "InPlaceIfPossible",
                    "maxUnavailable": 0,
                    "maxSurge": 1,
                    "partition": 0,
                    "inPlaceUpdateStrategy": {},
                },
            },
            id="beta in place",
        ),
        pytest.param(V1BETA1, {"type": "OnDelete"}, {"type": "OnDelete"}, id="beta OnDelete has no numbers"),
    ],
)
def test_update_strategy(version: str, given: Any, expected: dict[str, Any]) -> None:
    assert strategy(version, given) == expected


def test_templates_on_create() -> None:
    claims = [{"metadata": {"name": "data"}}]
    spec = default_cloneset(cloneset(V1BETA1, volumeClaimTemplates=claims), None, GATES)["spec"]
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert spec["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"}


def test_applying_the_manifest_of_a_taken_over_set_once_more_changes_nothing() -> None:
    """kubectl replaces lists by those of the manifest, and leaves what else the object has."""
    stored = openkruise.cloneset("clone")
    applied = json.loads(stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])["spec"]
    sent = copy.deepcopy(stored)
    sent["spec"]["volumeClaimTemplates"] = applied["volumeClaimTemplates"]
    sent["spec"]["template"]["spec"]["containers"] = applied["template"]["spec"]["containers"]
    sent["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:1.22.0"  # which a JSON patch had set
    assert sent != stored
    assert default_cloneset(sent, stored, GATES) == stored


def test_row_20_unchanged_template_stays_without_defaults() -> None:
    old = cloneset(V1BETA1, replicas=1)
    assert default_cloneset(cloneset(V1BETA1, replicas=5), old, GATES)["spec"]["template"] == {"spec": {}}


def test_changed_template_is_defaulted() -> None:
    new = cloneset(V1BETA1, template={"spec": {"hostNetwork": True}})
    assert default_cloneset(new, cloneset(V1BETA1), GATES)["spec"]["template"]["spec"]["restartPolicy"] == "Always"


def test_gate_template_no_defaults() -> None:
    document = default_cloneset(cloneset(V1BETA1), None, Gates.parse("TemplateNoDefaults=true"))
    assert document["spec"]["template"] == {"spec": {}}


def test_unknown_fields_and_the_request_survive() -> None:
    document = cloneset(V1BETA1, future={"a": 1})
    assert default_cloneset(document, None, GATES)["spec"]["future"] == {"a": 1}
    assert "replicas" not in document["spec"]
