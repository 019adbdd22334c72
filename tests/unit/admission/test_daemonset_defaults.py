"""DaemonSet defaults in both versions (daemonset.md §3.1), and OpenKruise's stored form of the same manifest."""

import json
from typing import Any

import pytest

from flotilla_common.api.kinds.daemonset.api import default_daemonset
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from tests.unit.workload import openkruise

BOTH = [V1ALPHA1, V1BETA1]
ROLLING = {"rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0}


def defaulted(version: str = V1BETA1, **spec: Any) -> dict[str, Any]:
    return default_daemonset({"apiVersion": version, "kind": "DaemonSet", "spec": spec})["spec"]


@pytest.mark.parametrize("version", BOTH)
def test_numbers_and_strategy(version: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": ROLLING}
    assert defaulted(version) == {"burstReplicas": 250, "revisionHistoryLimit": 10, "updateStrategy": strategy}
    given = {"burstReplicas": "10%", "revisionHistoryLimit": 0, "updateStrategy": {"type": "OnDelete"}}
    assert defaulted(version, **given) == given


STRATEGIES = [
    pytest.param({"type": "", "rollingUpdate": None}, ROLLING, id="empty type"),
    pytest.param({"rollingUpdate": {"maxSurge": 0}}, {"rollingUpdateType": "Standard", "maxSurge": 0}, id="surge 0"),
    pytest.param({"rollingUpdate": {"maxSurge": 2}}, {"rollingUpdateType": "Standard", "maxSurge": 2}, id="surge"),
    pytest.param(
        {"rollingUpdate": {"maxUnavailable": "20%"}},
        {"rollingUpdateType": "Standard", "maxUnavailable": "20%"},
        id="unavailable",
    ),
    pytest.param(
        {"rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "partition": "50%", "paused": True}},
        ROLLING | {"rollingUpdateType": "InPlaceIfPossible", "partition": "50%", "paused": True},
        id="in place",
    ),
    pytest.param({"rollingUpdate": {"rollingUpdateType": ""}}, ROLLING, id="empty rolling type"),
]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("strategy", "expected"), STRATEGIES)
def test_rolling_updates(version: str, strategy: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaulted(version, updateStrategy=strategy)["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": expected,
    }


@pytest.mark.parametrize("strategy", [{"type": "OnDelete", "rollingUpdate": {"partition": 1}}, {"type": "Other"}])
def test_other_types_get_no_numbers(strategy: dict[str, Any]) -> None:
    assert defaulted(updateStrategy=strategy)["updateStrategy"] == strategy


@pytest.mark.parametrize(
    ("version", "given", "expected"),
    [
        pytest.param(V1ALPHA1, {}, {"maxSurge": 1, "maxUnavailable": 0}, id="row 41"),
        pytest.param(V1ALPHA1, {"maxSurge": "60%"}, {"maxSurge": "60%", "maxUnavailable": 0}, id="with a number"),
        pytest.param(V1ALPHA1, {"maxUnavailable": 1}, {"maxSurge": 1, "maxUnavailable": 1}, id="row 42: refused later"),
    ],
)
def test_surging(version: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    strategy = {"rollingUpdate": {"rollingUpdateType": "Surging"} | given}
    rolling = defaulted(version, updateStrategy=strategy)["updateStrategy"]["rollingUpdate"]
    assert rolling == {"rollingUpdateType": "Standard"} | expected


def test_row_43_the_newer_version_does_not_know_the_word() -> None:
    strategy = {"rollingUpdate": {"rollingUpdateType": "Surging"}}
    rolling = defaulted(updateStrategy=strategy)["updateStrategy"]["rollingUpdate"]
    assert rolling == {"rollingUpdateType": "Surging", "maxUnavailable": 1, "maxSurge": 0}


@pytest.mark.parametrize("version", BOTH)
def test_the_template_is_stored_as_it_was_sent(version: str) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 1}]}]}, "future": 1}
    assert defaulted(version, template=template)["template"] == template


def test_the_request_is_not_changed() -> None:
    document = {"apiVersion": V1BETA1, "spec": {"updateStrategy": {"rollingUpdate": {}}}}
    default_daemonset(document)
    assert document == {"apiVersion": V1BETA1, "spec": {"updateStrategy": {"rollingUpdate": {}}}}


@pytest.mark.parametrize("file", ["daemonsets", "daemonsets.v1alpha1"])
def test_what_is_stored_has_all_defaults_already(file: str) -> None:
    (stored,) = openkruise.documents(file)
    assert default_daemonset(stored) == stored


def test_the_manifest_becomes_what_openkruise_stored() -> None:
    (stored,) = openkruise.documents("daemonsets")
    applied = json.loads(stored["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    applied["spec"]["template"] = stored["spec"]["template"]  # which patches had changed
    assert default_daemonset(applied)["spec"] == stored["spec"]
