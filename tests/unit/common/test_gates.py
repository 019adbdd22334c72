"""The gates' derivation; rows are the worked examples of install.md §12 and the order of §3."""

import pytest

from flotilla_common.gates import NAMES, Gates

ON, OFF = True, False


@pytest.mark.parametrize(
    ("text", "kinds", "expected"),
    [
        pytest.param(
            "",
            "",
            {
                "PodWebhook": ON,
                "KruiseDaemon": ON,
                "CloneSetShortHash": OFF,
                "TemplateNoDefaults": OFF,
                "EnableExternalCerts": OFF,
                "PreDownloadImageForInPlaceUpdate": OFF,
            },
            id="defaults",
        ),
        pytest.param(
            "",
            "",
            {"ResourcesDeletionProtection": ON, "ResourceDistributionGate": ON, "ImagePullJobGate": ON},
            id="our three extra defaults",
        ),
        pytest.param(
            "ImagePullJobGate=false,PreDownloadImageForInPlaceUpdate=true", "", {"ImagePullJobGate": ON}, id="row 3"
        ),
        pytest.param("KruiseDaemon=false,ImagePullJobGate=true", "", {"ImagePullJobGate": OFF}, id="row 4"),
        pytest.param(
            "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true",
            "",
            {"PreDownloadImageForInPlaceUpdate": OFF, "ImagePullJobGate": OFF},
            id="row 5",
        ),
        pytest.param(
            "AllAlpha=true,ResourcesDeletionProtection=false",
            "",
            {"DeletionProtectionForCRDCascadingGate": OFF, "CloneSetShortHash": ON},
            id="row 6",
        ),
        pytest.param(
            "AllAlpha=true,AllBeta=true",
            "",
            dict.fromkeys(["EnableExternalCerts", "TemplateNoDefaults"], ON),
            id="row 7",
        ),
        pytest.param(
            "AllAlpha=true,AllBeta=true,EnableExternalCerts=false,TemplateNoDefaults=false",
            "",
            {"EnableExternalCerts": OFF, "TemplateNoDefaults": OFF, "CloneSetPartitionRollback": ON},
            id="conformance profile",
        ),
        pytest.param(
            "EnableExternalCerts=false,AllAlpha=true", "", {"EnableExternalCerts": OFF}, id="named before stage"
        ),
        pytest.param(
            "AllBeta=false", "", {"PodWebhook": OFF, "ImagePullJobGate": OFF, "WorkloadSpread": OFF}, id="no beta"
        ),
        pytest.param("", "CloneSet,StatefulSet", {"PodWebhook": OFF, "WorkloadSpread": OFF}, id="row 9"),
        pytest.param("", "CloneSet,SidecarSet", {"PodWebhook": ON}, id="row 10"),
        pytest.param("", "CloneSet, SidecarSet", {"PodWebhook": ON}, id="row 11: blanks are trimmed"),
        pytest.param("PodWebhook=true", "CloneSet", {"PodWebhook": ON}, id="explicit wins over the kinds"),
        pytest.param(
            "PodWebhook=false,WorkloadSpread=true,KruisePodReadinessGate=true",
            "",
            {
                "WorkloadSpread": OFF,
                "KruisePodReadinessGate": OFF,
                "PodUnavailableBudgetDeleteGate": OFF,
                "ResourcesDeletionProtection": ON,
            },
            id="webhooks.md row 14",
        ),
        pytest.param(" CloneSetShortHash = T , ", "", {"CloneSetShortHash": ON}, id="blanks and other spellings"),
    ],
)
def test_parse(text: str, kinds: str, expected: dict[str, bool]) -> None:
    gates = Gates.parse(text, kinds)
    assert {name: gates.on(name) for name in expected} == expected


def test_everything_on() -> None:
    assert Gates.parse("AllAlpha=true,AllBeta=true").enabled == NAMES


@pytest.mark.parametrize("text", ["NoSuchGate=true", "CloneSetShortHash", "CloneSetShortHash=yes", "=true"])
def test_bad_input_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="feature gate"):
        Gates.parse(text)


def test_unknown_name_is_a_slip_in_the_code() -> None:
    with pytest.raises(KeyError):
        Gates.parse("").on("NoSuchGate")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param("", "", id="defaults"),
        pytest.param("CloneSetShortHash=true,WorkloadSpread=true", "CloneSetShortHash=true", id="one that differs"),
        pytest.param("ResourceDistributionGate=false", "ResourceDistributionGate=false", id="one that is off"),
    ],
)
def test_changes_are_what_differs_from_the_defaults(text: str, changes: str):
    assert Gates.parse(text).changes() == changes


@pytest.mark.parametrize(
    "text", ["", "AllAlpha=true,AllBeta=true", "AllBeta=false", "PodWebhook=false,KruiseDaemon=false"]
)
def test_changes_give_the_same_gates_again(text: str):
    gates = Gates.parse(text)
    assert Gates.parse(gates.changes()) == gates
