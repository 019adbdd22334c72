"""ContainerRecreateRequest conversion: two status fields are annotations in v1alpha1.

See containerrecreaterequest.md §3.
"""

import msgspec
import pytest

from flotilla_common.api.kinds.containerrecreaterequest.types import convert
from flotilla_common.api.versions import V1ALPHA1, V1BETA1, hide
from tests.testkit.documents import Json

SINCE = "crr.apps.kruise.io/unready-acquired"
SYNC = "crr.apps.kruise.io/sync-container-statuses"
TIME = "2026-03-01T08:00:00Z"
SNAPSHOT = [
    {"name": "app", "ready": True, "restartCount": 1, "containerID": "containerd://c3"},
    {"name": "side", "ready": False, "restartCount": 0},
]
CONDITION = {
    "type": "PreRecreateGrace",
    "status": "True",
    "reason": "PreRecreateGrace",
    "message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
    "lastTransitionTime": TIME,
}
SPEC = {"podName": "p", "containers": [{"name": "app"}], "strategy": {"unreadyGracePeriodSeconds": 3}}


def document(version: str, status: Json | None = None, **annotations: str) -> Json:
    metadata: Json = {"name": "r", "labels": {"a": "b"}}
    if annotations:
        metadata["annotations"] = annotations
    found = {"apiVersion": version, "kind": "ContainerRecreateRequest", "metadata": metadata, "spec": SPEC}
    return found if status is None else found | {"status": status}


def annotated(**annotations: str) -> Json:
    keys = {"since": SINCE, "sync": SYNC, "own": "example.com/own"}
    return document(V1ALPHA1, {"phase": "Recreating"}, **{keys[name]: value for name, value in annotations.items()})


def test_fields_become_annotations():
    beta = document(V1BETA1, {"phase": "Recreating", "containerStatusSnapshot": SNAPSHOT, "conditions": [CONDITION]})
    alpha = convert(beta, V1ALPHA1)
    annotations = alpha["metadata"]["annotations"]
    assert annotations[SINCE] == TIME
    assert msgspec.json.decode(annotations[SYNC]) == SNAPSHOT
    assert alpha["status"] == {"phase": "Recreating"}
    assert (alpha["spec"], alpha["metadata"]["labels"]) == (SPEC, {"a": "b"})


def test_annotations_become_fields_and_are_not_kept():
    alpha = annotated(since=TIME, sync=msgspec.json.encode(SNAPSHOT).decode(), own="x")
    beta = convert(alpha, V1BETA1)
    assert beta["status"] == {"phase": "Recreating", "containerStatusSnapshot": SNAPSHOT, "conditions": [CONDITION]}
    assert beta["metadata"]["annotations"] == {"example.com/own": "x"}
    assert alpha["metadata"]["annotations"][SINCE] == TIME  # the given document is left alone


def test_round_trip():
    beta = document(V1BETA1, {"phase": "Recreating", "containerStatusSnapshot": SNAPSHOT, "conditions": [CONDITION]})
    assert convert(convert(beta, V1ALPHA1), V1BETA1) == beta
    bare = document(V1BETA1)
    assert convert(convert(bare, V1ALPHA1), V1BETA1) == bare


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"phase": "", "containerStatusSnapshot": []}, id="empty snapshot"),
        pytest.param({"phase": "", "conditions": [CONDITION | {"status": "False"}]}, id="condition that is not True"),
        pytest.param({"phase": "", "conditions": [CONDITION | {"type": "Other"}]}, id="other condition"),
        pytest.param(None, id="no status"),
    ],
)
def test_what_v1alpha1_does_not_show(status: Json | None):
    alpha = convert(document(V1BETA1, status), V1ALPHA1)
    hide(alpha)
    assert "annotations" not in alpha["metadata"]
    assert not alpha.get("status", {}).keys() & {"conditions", "containerStatusSnapshot"}


@pytest.mark.parametrize("other", [CONDITION | {"status": "False"}, CONDITION | {"type": "Other"}])
def test_other_conditions_stay_beside_it(other: Json):
    alone = document(V1BETA1, {"phase": "Recreating", "conditions": [other]})
    assert convert(convert(alone, V1ALPHA1), V1BETA1) == alone
    both = document(V1BETA1, {"phase": "Recreating", "conditions": [CONDITION | {"type": "Other"}, CONDITION]})
    assert convert(convert(both, V1ALPHA1), V1BETA1) == both


def test_annotations_that_were_stored_long_ago_are_not_believed():
    stale = document(V1BETA1, {"phase": "Completed"}, **{SINCE: TIME, SYNC: "[]"})
    assert "annotations" not in convert(stale, V1ALPHA1)["metadata"]


@pytest.mark.parametrize(
    "annotations", [{"since": "yesterday"}, {"sync": "{}"}, {"sync": "no JSON"}, {"sync": '[{"name": 1}]'}], ids=str
)
def test_unreadable_annotations_are_ignored(annotations: dict[str, str]):
    assert convert(annotated(**annotations), V1BETA1)["status"] == {"phase": "Recreating"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [("2026-03-01T10:00:00+02:00", TIME), ("2026-03-01T08:00:00.5Z", TIME), ("2026-03-01T08:00:00", TIME)],
)
def test_times_are_utc_in_whole_seconds(written: str, expected: str):
    (condition,) = convert(annotated(since=written), V1BETA1)["status"]["conditions"]
    assert condition["lastTransitionTime"] == expected


def test_annotations_without_a_status_make_one_that_the_schema_takes():
    beta = convert(document(V1ALPHA1, None, **{SINCE: TIME}), V1BETA1)
    assert beta["status"] == {"phase": "", "conditions": [CONDITION]}
