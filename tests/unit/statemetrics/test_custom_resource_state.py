"""integrations/kube-state-metrics uses the CRDs' fields for all kinds, and gives the same numbers as the service."""

import pytest
import yaml

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_statemetrics.app import KINDS
from flotilla_statemetrics.families import AnyKind
from flotilla_statemetrics.kinds.statefulsets import ADVANCED_STATEFUL_SETS
from tests.support.custom_resource_state import FOLDER, RESOURCES, configured, series_of
from tests.support.hostile.reviews import schema_of
from tests.testkit.documents import Json
from tests.unit.statemetrics.scraped import scraped

OF_ALL = {"name": "string", "namespace": "string", "creationTimestamp": "string", "generation": "integer"}
LEFT_OUT = {
    "max_surge",
    "max_unavailable",
    "strategy_partition",
    "replicas_unavailable",
    "namespcace",
    "hotupgradeemptyimage",
    "parallelism",
    "max_replicas",
}
"""Metrics of the service alone: percentages, differences, and those whose series would lack a label."""


def test_every_kind_is_configured_in_the_version_that_is_stored() -> None:
    expected = [(kind.resource.group, kind.resource.version, kind.resource.kind) for kind in catalogue.KINDS]
    assert sorted(tuple(one["groupVersionKind"].values()) for one in RESOURCES) == sorted(expected)


def test_its_rights_are_to_read_what_is_configured() -> None:
    role, binding = yaml.safe_load_all((FOLDER / "rbac.yaml").read_text(encoding="utf-8"))
    named = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    crds = {("apiextensions.k8s.io", "customresourcedefinitions")}
    assert named == {(kind.resource.group, kind.resource.plural) for kind in catalogue.KINDS} | crds
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def type_at(schema: Json, path: list[str]) -> str:
    """Return the type of the field at a path. Raises KeyError where the schema has none."""
    for part in path:
        schema = schema.get("items", schema)
        if schema.get("additionalProperties"):
            schema = schema["additionalProperties"]
        elif part == "name" and schema.get("x-kubernetes-preserve-unknown-fields"):  # of a container, as in pods
            schema = {"type": "string"}
        else:
            schema = schema["properties"][part]
    return schema.get("type", "any")


@pytest.mark.parametrize("kind", catalogue.KINDS, ids=lambda kind: kind.resource.kind)
def test_every_path_is_a_field_of_the_crd(kind: Kind) -> None:
    schema = schema_of(kind, kind.resource.version)
    labels: Json = {"type": "object", "additionalProperties": {"type": "string"}}
    metadata: Json = {name: {"type": kind_of} for name, kind_of in OF_ALL.items()} | {"labels": labels}
    schema = schema | {"properties": schema["properties"] | {"metadata": {"properties": metadata}}}
    config = configured(kind.resource.kind)
    assert {type_at(schema, path) for path in config["labelsFromPath"].values()} == {"string"}
    assert ("namespace" in config["labelsFromPath"]) is kind.resource.namespaced
    for metric in config["metrics"]:
        each = metric["each"]
        form = each[each["type"][0].lower() + each["type"][1:]]
        path = form.get("path", [])
        for label in form.get("labelsFromPath", {}).values():
            assert type_at(schema, [*path, *label]) in {"string", "object", "array"}, metric["name"]
        value = [*path, *form.get("valueFrom", [])]
        if each["type"] == "Gauge":
            fits = (
                {"integer", "boolean", "string"}
                if value[-1].endswith(("Time", "stamp", "status"))
                else {"integer", "boolean"}
            )
            assert type_at(schema, value) in fits, metric["name"]
        elif path:
            assert type_at(schema, path) in {"array", "string"}, metric["name"]


SPEC: Json = {
    "replicas": 5,
    "reserveOrdinals": [1, "3-4"],
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "paused": True}},
    "scheduleStrategy": {"type": "Fixed"},
    "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 9},
    "containers": [
        {
            "name": "mesh",
            "podInjectPolicy": "BeforeAppContainer",
            "shareVolumePolicy": {"type": "disabled"},
            "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
        }
    ],
}


def document(kind: AnyKind) -> Json:
    """Return an object with a number of its own in each field of its status."""
    resource = kind.resource
    (known,) = [one for one in catalogue.KINDS if one.resource == resource]
    fields = schema_of(known, resource.version)["properties"]["status"]["properties"]
    status: Json = {name: 10 + place for place, name in enumerate(fields) if fields[name].get("type") == "integer"}
    status |= {name: f"web-{name}" for name in fields if name.endswith("Revision")}
    if "conditions" in fields:
        status["conditions"] = [{"type": "A", "status": "True"}, {"type": "B", "status": "Unknown"}]
    if "subsetStatuses" in fields:
        status["subsetStatuses"] = [{"name": "a", "replicas": 3, "missingReplicas": -1}]
    metadata: Json = {
        "name": "web",
        "generation": 7,
        "creationTimestamp": "2026-03-01T12:00:00Z",
        "labels": {"a.b": "c"},
    }
    if resource.namespaced:
        metadata["namespace"] = "shop"
    spec = {
        name: SPEC[name]
        for name in schema_of(known, resource.version)["properties"]["spec"]["properties"]
        if name in SPEC
    }
    return {"kind": resource.kind, "metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind is not ADVANCED_STATEFUL_SETS], ids=lambda kind: kind.resource.kind
)
@pytest.mark.parametrize("bare", [False, True], ids=["whole", "without a status"])
def test_its_numbers_are_those_of_the_service(kind: AnyKind, bare: bool) -> None:
    obj = document(kind) | ({"status": {}} if bare else {})
    ours, theirs = scraped(kind, obj), series_of(obj)
    assert theirs
    if bare:  # there, a series of an unknown revision lacks its label
        theirs = {series: value for series, value in theirs.items() if not series[0].endswith("_revision")}
    assert {series: ours.get(series) for series in theirs} == theirs
    missing = {name for name, labels in ours.keys() - theirs.keys() if dict(labels).get("status", "true") == "true"}
    assert {name for name in missing if not any(word in name for word in LEFT_OUT)} == set()
