"""The CRD of AdvancedCronJob: names, columns, and what the versions differ in (advancedcronjob.md §1, §2)."""

from typing import Any

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.advancedcronjob.kind import KIND
from flotilla_common.api.kinds.broadcastjob import crd as broadcastjob
from flotilla_common.api.kinds.imagelistpulljob import crd as imagelistpulljob
from tests.unit.crds.test_crds import walk

SPEC = definition(KIND)["spec"]
VERSIONS = {version["name"]: version for version in SPEC["versions"]}
COLUMNS = [
    ("Schedule", "string", ".spec.schedule"),
    ("Type", "string", ".status.type"),
    ("LastScheduleTime", "date", ".status.lastScheduleTime"),
    ("AGE", "date", ".metadata.creationTimestamp"),
]
TEMPLATE = ".spec.template"


def fields(version: str) -> dict[str, Any]:
    return dict(walk(VERSIONS[version]["schema"]["openAPIV3Schema"]))


def test_names_scope_and_conversion():
    assert SPEC["names"] == {
        "kind": "AdvancedCronJob",
        "listKind": "AdvancedCronJobList",
        "plural": "advancedcronjobs",
        "singular": "advancedcronjob",
        "shortNames": ["acj"],
    }
    assert (SPEC["group"], SPEC["scope"]) == ("apps.kruise.io", "Namespaced")
    assert SPEC["conversion"]["strategy"] == "Webhook"  # docs/adr/0034: v1alpha1 lacks a field
    assert {name: (one["served"], one["storage"]) for name, one in VERSIONS.items()} == {
        "v1alpha1": (True, False),
        "v1beta1": (True, True),
    }


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS.keys())
def test_columns_and_subresources(version: Any):
    columns = version["additionalPrinterColumns"]
    assert [(one["name"], one["type"], one["jsonPath"]) for one in columns] == COLUMNS
    assert version["subresources"] == {"status": {}}


def test_only_the_newer_version_knows_lists_of_images():
    alpha, beta = set(fields("v1alpha1")), set(fields("v1beta1"))
    images = f"{TEMPLATE}.imageListPullJobTemplate"
    assert alpha <= beta
    assert {path for path in beta - alpha if not path.startswith(f"{images}.")} == {images}


@pytest.mark.parametrize("version", VERSIONS)
def test_templates(version: str):
    known = fields(version)
    keeps = "x-kubernetes-preserve-unknown-fields"
    assert known[".spec"]["required"] == ["schedule", "template"]
    assert known[f"{TEMPLATE}.jobTemplate"][keeps] is True
    metadata = [path for path in known if path.startswith(TEMPLATE) and path.endswith(".metadata")]
    assert [known[path][keeps] for path in metadata] == [True] * (1 if version == "v1alpha1" else 2)
    assert known[f"{TEMPLATE}.broadcastJobTemplate.spec"] == broadcastjob.spec()


def test_lists_of_images_are_as_their_own_kind_has_them():
    known = fields("v1beta1")
    assert known[f"{TEMPLATE}.imageListPullJobTemplate.spec"] == imagelistpulljob.spec()
    assert known[f"{TEMPLATE}.imageListPullJobTemplate.spec"]["required"] == ["completionPolicy", "images"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_policy_is_all_that_the_schema_judges(version: str):
    known = fields(version)
    words = {"enum", "minimum", "maximum", "default"}
    assert {path for path, node in known.items() if words & node.keys()} == {".spec.concurrencyPolicy"}
    assert known[".spec.concurrencyPolicy"]["enum"] == ["Allow", "Forbid", "Replace"]
