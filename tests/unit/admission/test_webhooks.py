"""The webhook entries: scope follows need (webhooks.md §2, §3)."""

import msgspec
import pytest

from flotilla_common.api.admission.handlers import Tools
from flotilla_common.api.admission.review import ALLOWED, Answer, Request
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.rules import WRITES, Admission
from flotilla_common.api.resources import Resource
from flotilla_common.api.webhooks import bound, mutating_entries, path_of, validating_entries
from flotilla_common.gates import Gates

PULLS = {"{}imagelistpulljob-v1beta1.kb.io", "{}imagepulljob-v1beta1.kb.io", "{}nodeimage.kb.io"}
MUTATING = {
    "madvancedcronjob.kb.io",
    "mbroadcastjob.kb.io",
    "mcloneset.kb.io",
    "mcontainerrecreaterequest.kb.io",
    "mdaemonset.kb.io",
    "msidecarset.kb.io",
    "mstatefulset.kb.io",
    "muniteddeployment.kb.io",
    *(name.format("m") for name in PULLS),
}
VALIDATING = {
    "vadvancedcronjob.kb.io",
    "vbroadcastjob.kb.io",
    "vcloneset.kb.io",
    "vdaemonset.kb.io",
    "vephemeraljobs.kb.io",
    "vpersistentpodstate.kb.io",
    "vpodprobemarker.kb.io",
    "vpodunavailablebudget.kb.io",
    "vresourcedistribution.kb.io",
    "vsidecarset.kb.io",
    "vstatefulset.kb.io",
    "vuniteddeployment.kb.io",
    "vworkloadspread.kb.io",
    *(name.format("v") for name in PULLS),
}
ARMING = {
    "vpersistentpodstate.kb.io",
    "vpodprobemarker.kb.io",
    "vpodunavailablebudget.kb.io",
    "vsidecarset.kb.io",
    "vworkloadspread.kb.io",
}
"""Their objects bring the pod webhook into use."""

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
        pytest.param("", MUTATING, VALIDATING | SEVEN, id="defaults"),
        pytest.param("KruisePodReadinessGate=true", MUTATING, VALIDATING | SEVEN, id="pods: the webhook's business"),
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
    assert {entry["name"] for entry in mutating_entries()} == mutating
    assert {entry["name"] for entry in validating_entries(parsed)} == validating


async def _asked(_: Request, __: Tools) -> Answer:
    return ALLOWED


BOTH, ALPHA = ("v1alpha1", "v1beta1"), ("v1alpha1",)


@pytest.mark.parametrize(
    ("kind", "versions", "admission", "entries"),
    [
        pytest.param(
            "UnitedDeployment",
            BOTH,
            Admission(validate=_asked, validates=(*WRITES, "DELETE")),
            ["vuniteddeployment /validate-apps-kruise-io-uniteddeployment C U D"],
            id="deletion too",
        ),
        pytest.param(
            "PodProbeMarker",
            ALPHA,
            Admission(validate=_asked),
            ["vpodprobemarker /validate-apps-kruise-io-podprobemarker C U"],
            id="one version",
        ),
        pytest.param(
            "PodUnavailableBudget",
            BOTH,
            Admission(validate=_asked),
            ["vpodunavailablebudget /validate-policy-kruise-io-podunavailablebudget C U"],
            id="the other group",
        ),
        pytest.param("NodePodProbe", ALPHA, Admission(), [], id="no webhook"),
    ],
)
def test_entries_of_kinds_that_come(
    kind: str, versions: tuple[str, ...], admission: Admission, entries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All differences between the kinds of webhooks.md §3 can be declared."""
    group = "policy.kruise.io" if kind == "PodUnavailableBudget" else "apps.kruise.io"
    rules = msgspec.structs.replace(catalogue.KINDS[0].rules(), admission=admission)
    declared = msgspec.structs.replace(
        catalogue.KINDS[0],
        resource=Resource(group, versions[-1], f"{kind.lower()}s", kind),
        versions=versions,
        rules=lambda: rules,
    )
    monkeypatch.setattr(catalogue, "KINDS", (declared,))
    gates = Gates.parse("")
    made = [entry for entry in mutating_entries() + validating_entries(gates) if entry["name"] not in SEVEN]
    assert [said(entry) for entry in made] == entries
    for entry in made:
        (rule,) = entry["rules"]
        assert (rule["apiGroups"], rule["apiVersions"]) == ([group], list(versions))
        assert rule["resources"] == [f"{kind.lower()}s"]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("mbroadcastjob /mutate-apps-kruise-io-broadcastjob C U", id="defaults"),
        pytest.param("vbroadcastjob /validate-apps-kruise-io-broadcastjob C U", id="rules"),
        pytest.param(
            "vephemeraljobs /validate-apps-kruise-io-v1alpha1-ephemeraljob C U", id="an old path, a name of its own"
        ),
    ],
)
def test_entries_of_jobs(entry: str) -> None:
    assert entry in {said(one) for one in mutating_entries() + validating_entries(Gates.parse(""))}


def said(entry: Json) -> str:
    operations = " ".join(operation[0] for operation in entry["rules"][0]["operations"])
    return f"{entry['name'].removesuffix('.kb.io')} {path_of(entry)} {operations}"


def test_every_entry_is_complete() -> None:
    gates = Gates.parse("KruisePodReadinessGate=true")
    for entry in mutating_entries() + validating_entries(gates):
        arms = entry["name"] in ARMING
        assert (entry["sideEffects"], entry["timeoutSeconds"]) == ("NoneOnDryRun" if arms else "None", 30)
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
    entry = mutating_entries()[0]
    served = bound(entry, "Y2E=")
    assert served["clientConfig"] == entry["clientConfig"] | {"caBundle": "Y2E="}
    outside = bound(entry, "Y2E=", "https://10.0.0.1:9876")
    assert outside["clientConfig"] == {
        "url": "https://10.0.0.1:9876/mutate-apps-kruise-io-advancedcronjob",
        "caBundle": "Y2E=",
    }
    path = path_of(outside)
    assert path == path_of(entry)
    assert bound(outside, "Y2E=", "https://h:1")["clientConfig"]["url"] == f"https://h:1{path}"
