"""What writes do to the documents of the stand-in."""

import pytest

from tests.perf.played.documents import Conflict, expect, names, patched, replaced, selects
from tests.support.rest import JSON_PATCH, MERGE, STRATEGIC
from tests.testkit.documents import Json

STORED: Json = {
    "metadata": {"name": "web", "uid": "u", "resourceVersion": "5", "generation": 2, "creationTimestamp": "then"},
    "spec": {"containers": [{"name": "main", "image": "a"}, {"name": "proxy", "image": "b"}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def test_a_strategic_patch_merges_lists_by_their_keys() -> None:
    after = patched(STORED, {"spec": {"containers": [{"name": "main", "image": "c"}]}}, STRATEGIC)
    images = {container["name"]: container["image"] for container in after["spec"]["containers"]}
    assert images == {"main": "c", "proxy": "b"}


def test_a_merge_patch_replaces_lists() -> None:
    after = patched(STORED, {"spec": {"containers": [{"name": "main"}]}}, MERGE)
    assert after["spec"]["containers"] == [{"name": "main"}]


def test_a_changed_spec_has_a_new_generation() -> None:
    assert patched(STORED, {"spec": {"replicas": 3}}, MERGE)["metadata"]["generation"] == 3
    assert patched(STORED, {"metadata": {"labels": {"a": "b"}}}, MERGE)["metadata"]["generation"] == 2


def test_a_patch_of_the_status_changes_nothing_else() -> None:
    after = patched(STORED, {"status": {"phase": "Failed"}, "spec": {"replicas": 3}}, MERGE, "status")
    assert (after["spec"], after["status"]["phase"]) == (STORED["spec"], "Failed")


def test_a_patch_of_the_rest_changes_no_status() -> None:
    assert patched(STORED, {"status": {"phase": "Failed"}}, MERGE)["status"] == STORED["status"]


def test_patches_of_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="json-patch"):
        patched(STORED, {}, JSON_PATCH)


@pytest.mark.parametrize("named", [{"uid": "other"}, {"resourceVersion": "4"}])
def test_a_write_of_another_version_or_object_conflicts(named: Json) -> None:
    with pytest.raises(Conflict):
        patched(STORED, {"metadata": named}, MERGE)


def test_a_write_that_names_the_stored_version_succeeds() -> None:
    expect(STORED, {"metadata": {"uid": "u", "resourceVersion": "5"}})


def test_a_replaced_object_keeps_its_identity_and_status() -> None:
    after = replaced(STORED, {"metadata": {"name": "web"}, "spec": STORED["spec"]})
    assert after["metadata"] == {"name": "web", "uid": "u", "creationTimestamp": "then"}
    assert after["status"] == STORED["status"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app", True),
        ("zone", False),
        ("!zone", True),
        ("!app", False),
        ("zone=a", False),
    ],
)
def test_label_selectors(selector: str, *, selected: bool) -> None:
    assert selects(selector, {"app": "web", "tier": "front"}) is selected


def test_field_selectors_name_an_object() -> None:
    assert (names(""), names("metadata.name=web")) == ("", "web")
    with pytest.raises(ValueError, match=r"spec\.nodeName"):
        names("spec.nodeName=node-1")
