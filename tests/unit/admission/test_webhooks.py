"""The webhook entries: scope follows need (webhooks.md §2, §3)."""

import pytest

from flotilla_common.api.webhooks import bound, mutating_entries, path_of, validating_entries
from flotilla_common.gates import Gates

PULLS = {"{}imagelistpulljob-v1beta1.kb.io", "{}imagepulljob-v1beta1.kb.io", "{}nodeimage.kb.io"}
MUTATING = {"mcloneset.kb.io", "mcontainerrecreaterequest.kb.io", *(name.format("m") for name in PULLS)}
VALIDATING = {"vcloneset.kb.io", *(name.format("v") for name in PULLS)}
SEVEN = {
    "vbuiltindeployment.kb.io",
    "vbuiltinreplicaset.kb.io",
    "vbuiltinstatefulset.kb.io",
    "vcustomresourcedefinition.kb.io",
    "vingress.kb.io",
    "vnamespace.kb.io",
    "vservice.kb.io",
}


@pytest.mark.parametrize(
    ("gates", "mutating", "validating"),
    [
        pytest.param("", MUTATING, VALIDATING | SEVEN, id="defaults: no pod rule"),
        pytest.param(
            "KruisePodReadinessGate=true",
            MUTATING | {"mpod.kb.io"},
            VALIDATING | SEVEN,
            id="pod rule is armed",
        ),
        pytest.param(
            "KruisePodReadinessGate=true,PodWebhook=false",
            MUTATING,
            VALIDATING | SEVEN,
            id="row 14",
        ),
        pytest.param(
            "ResourcesDeletionProtection=false",
            MUTATING,
            VALIDATING | SEVEN - {"vservice.kb.io", "vingress.kb.io"},
            id="no protection",
        ),
    ],
)
def test_entries(gates: str, mutating: set[str], validating: set[str]) -> None:
    parsed = Gates.parse(gates)
    assert {entry["name"] for entry in mutating_entries(parsed)} == mutating
    assert {entry["name"] for entry in validating_entries(parsed)} == validating


def test_every_entry_is_complete() -> None:
    gates = Gates.parse("KruisePodReadinessGate=true")
    for entry in mutating_entries(gates) + validating_entries(gates):
        assert (entry["sideEffects"], entry["timeoutSeconds"]) == ("None", 30)
        assert entry["admissionReviewVersions"] == ["v1", "v1beta1"]
        service = entry["clientConfig"]["service"]
        assert (service["namespace"], service["name"]) == ("kruise-system", "kruise-webhook-service")
        assert path_of(entry) == service["path"]


def test_deletion_protection_never_blocks_an_unlabelled_object_or_an_outage() -> None:
    for entry in validating_entries(Gates.parse("")):
        if entry["name"] in SEVEN:
            assert entry["failurePolicy"] == "Ignore"
            assert entry["objectSelector"]["matchExpressions"][0]["key"] == "policy.kruise.io/delete-protection"


def test_bound_to_service_and_url() -> None:
    entry = mutating_entries(Gates.parse(""))[0]
    served = bound(entry, "Y2E=")
    assert served["clientConfig"] == entry["clientConfig"] | {"caBundle": "Y2E="}
    outside = bound(entry, "Y2E=", "https://10.0.0.1:9876")
    assert outside["clientConfig"] == {
        "url": "https://10.0.0.1:9876/mutate-apps-kruise-io-cloneset",
        "caBundle": "Y2E=",
    }
    assert path_of(outside) == "/mutate-apps-kruise-io-cloneset"
    assert bound(outside, "Y2E=", "https://h:1")["clientConfig"]["url"] == "https://h:1/mutate-apps-kruise-io-cloneset"
