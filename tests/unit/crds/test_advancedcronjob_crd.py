"""The CRD of AdvancedCronJob: fields, and how the versions differ (advancedcronjob.md §1, §2)."""

import pytest

from flotilla_common.api.kinds.advancedcronjob.kind import KIND
from flotilla_common.api.kinds.broadcastjob import api as broadcastjob
from flotilla_common.api.kinds.imagelistpulljob import api as imagelistpulljob
from tests.unit.crds.schemas import BOTH, fields, restricted

TEMPLATE = ".spec.template"


def test_only_the_newer_version_knows_lists_of_images():
    alpha, beta = set(fields(KIND, "v1alpha1")), set(fields(KIND, "v1beta1"))
    images = f"{TEMPLATE}.imageListPullJobTemplate"
    assert alpha <= beta
    assert {path for path in beta - alpha if not path.startswith(f"{images}.")} == {images}


@pytest.mark.parametrize("version", BOTH)
def test_templates(version: str):
    known = fields(KIND, version)
    keeps = "x-kubernetes-preserve-unknown-fields"
    assert known[".spec"]["required"] == ["schedule", "template"]
    assert known[f"{TEMPLATE}.jobTemplate"][keeps] is True
    metadata = [path for path in known if path.startswith(TEMPLATE) and path.endswith(".metadata")]
    assert [known[path][keeps] for path in metadata] == [True] * (1 if version == "v1alpha1" else 2)
    assert known[f"{TEMPLATE}.broadcastJobTemplate.spec"] == broadcastjob.spec_schema()


def test_lists_of_images_are_as_their_own_kind_has_them():
    known = fields(KIND, "v1beta1")
    assert known[f"{TEMPLATE}.imageListPullJobTemplate.spec"] == imagelistpulljob.spec_schema()
    assert known[f"{TEMPLATE}.imageListPullJobTemplate.spec"]["required"] == ["completionPolicy", "images"]


@pytest.mark.parametrize("version", BOTH)
def test_the_policy_is_all_that_the_schema_judges(version: str):
    known = fields(KIND, version)
    assert restricted(known) == [".spec.concurrencyPolicy"]
    assert known[".spec.concurrencyPolicy"]["enum"] == ["Allow", "Forbid", "Replace"]
