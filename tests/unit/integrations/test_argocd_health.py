"""Argo CD's health of objects of each kind, in both versions."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.kinds.catalogue import KINDS
from flotilla_common.api.kinds.kind import Kind
from tests.support import lua as scripts
from tests.support.lua import Lua
from tests.testkit.documents import Json

HEALTHY, PROGRESSING, SUSPENDED, DEGRADED = "Healthy", "Progressing", "Suspended", "Degraded"
LUA = Lua()
NAMED = {kind.name: kind for kind in KINDS}


def rolling(**rolling: Any) -> Json:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}


ON_DELETE: Json = {"updateStrategy": {"type": "OnDelete"}}


def pods(there: int = 4, updated: int = 4, available: int = 4, **more: Any) -> Json:
    """Return the status of a CloneSet or StatefulSet, without counts that are absent when 0."""
    return {
        "observedGeneration": 2,
        "replicas": there,
        "updatedReplicas": updated,
        "availableReplicas": available,
        **more,
    }


def nodes(desired: int = 5, there: int = 5, updated: int = 5, available: int | None = 5) -> Json:
    counts = {"desiredNumberScheduled": desired, "currentNumberScheduled": there, "updatedNumberScheduled": updated}
    return {"observedGeneration": 2, **counts} | ({"numberAvailable": available} if available else {})


def failed(kind: str, message: str = "quota exceeded", **more: Any) -> Json:
    return {"conditions": [{"type": kind, "status": "True", "message": message, **more}]}


FOUR: Json = {"replicas": 4}
SEEN: Json = {"observedGeneration": 2}
OVERDUE: Json = {
    "conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
    ]
}
SUBSETS: Json = {"subsetStatuses": [{"name": "a", "replicas": 3}, {"name": "b", "replicas": 1}]}
MANUAL: Json = {"updateStrategy": {"type": "Manual", "manualUpdate": {"partitions": {"a": 2}}}}
RESERVED: Json = {
    "subsetStatuses": [
        {"name": "a", "replicas": 4, "reservedPods": 4},
        {"name": "b", "replicas": 4, "readyReplicas": 4},
    ]
}
IMAGES: Json = {"images": {"nginx": {"tags": [{"tag": "1"}]}, "redis": {"tags": [{"tag": "7"}]}}}
SELECTOR: Json = {"selector": {"matchLabels": {"canary": "true"}}}


def united(there: int = 4, updated: int = 4, ready: int = 4, **more: Any) -> Json:
    return (
        {"observedGeneration": 2, "replicas": there, "updatedReplicas": updated, "readyReplicas": ready}
        | SUBSETS
        | more
    )


def matched(matched: int = 4, updated: int = 4, updated_ready: int | None = 4) -> Json:
    counts = {"observedGeneration": 2, "matchedPods": matched, "updatedPods": updated, "readyPods": matched}
    return counts | ({"updatedReadyPods": updated_ready} if updated_ready else {})


def job(phase: str, succeeded: int = 0, failed: int = 0, active: int = 0, **more: Any) -> Json:
    return {"phase": phase, "desired": 3, "succeeded": succeeded, "failed": failed, "active": active, **more}


Row = tuple[str, Json, Json | None, str, str]

WORKLOADS: list[Row] = [
    row
    for kind in ("CloneSet", "StatefulSet")
    for row in (
        (kind, FOUR, None, PROGRESSING, "Waiting for the latest spec to be observed"),
        (kind, FOUR, {}, PROGRESSING, "Waiting for the latest spec"),
        (kind, FOUR, pods() | {"observedGeneration": 1}, PROGRESSING, "Waiting for the latest spec"),
        (kind, FOUR, pods(), HEALTHY, "All 4 pods are updated and available"),
        (kind, {}, pods(1, 1, 1), HEALTHY, "All 1 pods"),
        (kind, {"replicas": None}, pods(1, 1, 1), HEALTHY, ""),
        (kind, {"replicas": 0}, pods(0, 0, 0), HEALTHY, "All 0 pods"),
        (kind, {"replicas": 0}, pods(2, 2, 2), PROGRESSING, "2 pods are pending termination"),
        (kind, {"replicas": 0}, SEEN, HEALTHY, ""),
        (kind, FOUR, pods(0, 0, 0), PROGRESSING, "0 of 4 pods have been created"),
        (kind, FOUR, SEEN, PROGRESSING, "0 of 4 pods have been created"),
        (kind, FOUR, pods(4, 4, 3), PROGRESSING, "1 of 4 pods are not available"),
        (kind, FOUR, pods(5, 2, 4), PROGRESSING, "1 pods are pending termination"),
        (kind, FOUR, pods(4, 2, 4), PROGRESSING, "2 out of 4 new pods have been updated"),
        (kind, FOUR | rolling(partition=None, paused=None), pods(), HEALTHY, ""),
        (kind, FOUR | rolling(partition=0), pods(4, 2, 4), PROGRESSING, ""),
        (kind, FOUR | rolling(partition=2), pods(4, 1, 4, expectedUpdatedReplicas=2), PROGRESSING, "1 out of 2"),
        (kind, FOUR | rolling(partition=2), pods(4, 2, 3, expectedUpdatedReplicas=2), PROGRESSING, "not available"),
        (kind, FOUR | rolling(partition=2), pods(4, 2, 4, expectedUpdatedReplicas=2), SUSPENDED, "partition: 2 of 4"),
        (kind, FOUR | rolling(partition=2), pods(expectedUpdatedReplicas=2), HEALTHY, ""),
        (kind, FOUR | rolling(partition=4), pods(4, 0, 4), SUSPENDED, "0 of 4 pods are updated"),
        (kind, FOUR | rolling(partition=9), pods(4, 0, 4), SUSPENDED, "0 of 4 pods are updated"),
        (kind, FOUR | rolling(paused=True), pods(4, 1, 4), SUSPENDED, "Rollout is paused: 1 of 4 pods are updated"),
        (kind, FOUR | rolling(paused=True), pods(), SUSPENDED, "paused"),
        (kind, FOUR | rolling(paused=True), pods() | {"observedGeneration": 1}, PROGRESSING, ""),
        (kind, FOUR | ON_DELETE, pods(4, 1, 4), HEALTHY, "1 of 4 pods are updated, the others will be when"),
        (kind, FOUR | ON_DELETE, pods(4, 1, 3), PROGRESSING, "not available"),
    )
]

ROWS: list[Row] = [
    *WORKLOADS,
    ("CloneSet", FOUR | rolling(partition="0%"), pods(expectedUpdatedReplicas=4), HEALTHY, ""),
    ("CloneSet", FOUR | rolling(partition="50%"), pods(4, 1, 4, expectedUpdatedReplicas=2), PROGRESSING, "1 out of 2"),
    ("CloneSet", FOUR | rolling(partition="50%"), pods(4, 2, 4, expectedUpdatedReplicas=2), SUSPENDED, "2 of 4"),
    ("CloneSet", FOUR | rolling(partition="100%"), pods(4, 0, 4), SUSPENDED, "0 of 4 pods are updated"),
    ("CloneSet", FOUR | rolling(partition="100%"), pods(), HEALTHY, ""),
    ("CloneSet", {"replicas": 1} | rolling(partition="50%"), pods(1, 0, 1), SUSPENDED, ""),
    ("CloneSet", FOUR, pods(4, 2, 3, **OVERDUE), DEGRADED, "timed out (2 out of 4 new pods have been updated)"),
    ("CloneSet", FOUR | rolling(paused=True), pods(4, 2, 3, **OVERDUE), SUSPENDED, ""),
    ("CloneSet", FOUR, pods(1, 1, 1, **failed("FailedScale")), DEGRADED, "quota exceeded (1 of 4 pods"),
    ("CloneSet", FOUR, pods(4, 1, 4, **failed("FailedUpdate")), DEGRADED, "quota exceeded"),
    ("CloneSet", FOUR, pods(**failed("FailedScale")), HEALTHY, ""),
    ("CloneSet", FOUR, pods(4, 1, 4, conditions=[{"type": "Progressing", "status": "True"}]), PROGRESSING, ""),
    ("StatefulSet", FOUR, pods(2, 2, 2, **failed("FailedCreatePod")), DEGRADED, "quota exceeded (2 of 4 pods"),
    ("StatefulSet", FOUR, pods(4, 1, 4, **failed("FailedUpdatePod")), DEGRADED, "quota exceeded"),
    ("StatefulSet", FOUR, pods(**failed("FailedCreatePod")), HEALTHY, ""),
    ("DaemonSet", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("DaemonSet", {}, SEEN, HEALTHY, "All 0 pods"),
    ("DaemonSet", {}, nodes(), HEALTHY, "All 5 pods are updated and available"),
    ("DaemonSet", {}, nodes(there=3, updated=3, available=None), PROGRESSING, "3 of 5 pods have been created"),
    ("DaemonSet", {}, nodes(available=None), PROGRESSING, "5 of 5 pods are not available"),
    ("DaemonSet", {}, nodes(updated=1), PROGRESSING, "1 out of 5 new pods have been updated"),
    ("DaemonSet", rolling(paused=True), nodes(updated=1), SUSPENDED, "1 of 5"),
    ("DaemonSet", rolling(partition=2), nodes(updated=2), PROGRESSING, "2 out of 3"),
    ("DaemonSet", rolling(partition=2), nodes(updated=3), SUSPENDED, "Rollout has reached its partition: 3 of 5"),
    ("DaemonSet", rolling(partition=2), nodes(updated=5), HEALTHY, ""),
    ("DaemonSet", rolling(partition="50%"), nodes(updated=2), PROGRESSING, "2 out of 3"),
    ("DaemonSet", rolling(partition="50%"), nodes(updated=3), SUSPENDED, ""),
    ("DaemonSet", rolling(partition="100%"), nodes(updated=0), SUSPENDED, ""),
    ("DaemonSet", rolling(partition="0%"), nodes(updated=4), PROGRESSING, ""),
    ("DaemonSet", rolling(partition=100), nodes(updated=0), SUSPENDED, ""),
    ("DaemonSet", rolling(selector=SELECTOR["selector"]), nodes(updated=1), SUSPENDED, "reached its selector: 1 of 5"),
    ("DaemonSet", rolling(selector={}), nodes(updated=1), PROGRESSING, ""),
    ("DaemonSet", ON_DELETE, nodes(updated=1), HEALTHY, "1 of 5 pods are updated, the others will be when"),
    (
        "DaemonSet",
        rolling(partition=3) | {"scaleStrategy": {"partitionedScaling": True}},
        nodes(there=1, updated=1, available=1),
        PROGRESSING,
        "1 of 2 pods have been created",
    ),
    (
        "DaemonSet",
        rolling(partition=3) | {"scaleStrategy": {"partitionedScaling": True}},
        nodes(there=2, updated=2, available=2),
        SUSPENDED,
        "2 of 5",
    ),
    (
        "DaemonSet",
        rolling(partition=3) | {"scaleStrategy": {"partitionedScaling": True}},
        nodes(updated=2, available=4),
        PROGRESSING,
        "1 of 5 pods are not available",
    ),
    ("UnitedDeployment", FOUR, None, PROGRESSING, "Waiting for the latest spec"),
    ("UnitedDeployment", FOUR, united(), HEALTHY, "All 4 pods"),
    ("UnitedDeployment", FOUR, united(there=3, updated=3, ready=3), PROGRESSING, "3 of 4 pods have been created"),
    ("UnitedDeployment", FOUR, united(updated=1), PROGRESSING, "1 out of 4"),
    ("UnitedDeployment", FOUR, united(ready=3), PROGRESSING, "1 of 4 pods are not available"),
    ("UnitedDeployment", FOUR | MANUAL, united(updated=1), PROGRESSING, "1 out of 2"),
    ("UnitedDeployment", FOUR | MANUAL, united(updated=2), SUSPENDED, "partition: 2 of 4"),
    ("UnitedDeployment", FOUR | MANUAL, united(), HEALTHY, ""),
    ("UnitedDeployment", FOUR | MANUAL | {"template": {"deploymentTemplate": {}}}, united(updated=2), PROGRESSING, ""),
    ("UnitedDeployment", FOUR, united(there=1, **failed("SubsetFailure", "no quota")), DEGRADED, "no quota (1 of 4"),
    ("UnitedDeployment", FOUR, united(updated=8) | RESERVED, HEALTHY, "All 4 pods"),
    ("UnitedDeployment", {"replicas": 0}, united(0, 0, 0) | {"subsetStatuses": []}, HEALTHY, "All 0 pods"),
    ("SidecarSet", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("SidecarSet", {}, matched(), HEALTHY, "All 4 pods"),
    ("SidecarSet", {}, matched(0, 0, None), HEALTHY, "All 0 pods"),
    ("SidecarSet", {}, matched(4, 0, None), PROGRESSING, "0 out of 4"),
    ("SidecarSet", {}, matched(4, 4, 3), PROGRESSING, "1 of 4 pods are not available"),
    ("SidecarSet", {"updateStrategy": {"paused": True}}, matched(4, 1, 1), SUSPENDED, "paused: 1 of 4"),
    ("SidecarSet", {"updateStrategy": {"partition": 3}}, matched(4, 1, 1), SUSPENDED, "partition: 1 of 4"),
    ("SidecarSet", {"updateStrategy": {"partition": "70%"}}, matched(4, 0, None), PROGRESSING, "0 out of 1"),
    ("SidecarSet", {"updateStrategy": {"partition": "70%"}}, matched(4, 1, 1), SUSPENDED, ""),
    ("SidecarSet", {"updateStrategy": {"partition": "90%"}}, matched(4, 0, None), PROGRESSING, "0 out of 1"),
    ("SidecarSet", {"updateStrategy": {"partition": "50%"}}, matched(1, 0, None), SUSPENDED, ""),
    ("SidecarSet", {"updateStrategy": {"partition": "100%"}}, matched(4, 0, None), SUSPENDED, ""),
    ("SidecarSet", {"updateStrategy": {"partition": "150%"}}, matched(4, 0, None), SUSPENDED, ""),
    ("SidecarSet", {"updateStrategy": SELECTOR}, matched(4, 1, 1), SUSPENDED, "reached its selector: 1 of 4"),
    ("SidecarSet", {"updateStrategy": {"type": "NotUpdate"}}, matched(4, 1, 1), HEALTHY, "1 of 4"),
    ("SidecarSet", {"injectionStrategy": {"paused": True}}, matched(), SUSPENDED, "Injection is paused"),
    ("BroadcastJob", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("BroadcastJob", {}, job("running", 1, active=2), PROGRESSING, "1 of 3 pods succeeded, 0 failed"),
    ("BroadcastJob", {}, {"phase": "running"}, PROGRESSING, "0 of 0 pods"),
    ("BroadcastJob", {}, job("completed", 3), HEALTHY, "3 of 3 pods succeeded"),
    ("BroadcastJob", {"paused": True}, job("completed", 3), HEALTHY, ""),
    ("BroadcastJob", {}, job("failed", 2, 1, **failed("Failed", "BackoffLimit")), DEGRADED, "BackoffLimit (2 of 3"),
    ("BroadcastJob", {}, job("failed", 2, 1), DEGRADED, "Job failed"),
    ("BroadcastJob", {"paused": True}, job("running", active=3), SUSPENDED, "0 of 3"),
    ("BroadcastJob", {}, job("paused", 1, 1), SUSPENDED, "1 failed"),
    ("BroadcastJob", {"completionPolicy": {"type": "Never"}}, job("running", 3), HEALTHY, "waits for new nodes"),
    ("BroadcastJob", {"completionPolicy": {"type": "Never"}}, job("running", 2, active=1), PROGRESSING, ""),
    ("AdvancedCronJob", {}, None, HEALTHY, "Not yet scheduled"),
    ("AdvancedCronJob", {"paused": True}, None, SUSPENDED, "paused"),
    ("AdvancedCronJob", {}, {"lastScheduleTime": "T"}, HEALTHY, "Last scheduled at T, 0 active"),
    ("BroadcastJob", {}, job("paused", 1) | {"conditions": [{"type": "Complete", "status": "True"}]}, SUSPENDED, ""),
    ("AdvancedCronJob", {}, {"lastScheduleTime": "T", "active": [{}]}, PROGRESSING, "Last scheduled at T, 1 active"),
    ("EphemeralJob", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("EphemeralJob", {}, {"phase": "Waiting"}, PROGRESSING, "matches no pods"),
    ("EphemeralJob", {}, {"phase": "Running", "match": 2, "succeeded": 1}, PROGRESSING, "1 of 2 pods succeeded"),
    ("EphemeralJob", {}, {"phase": "Unknown", "match": 3, "succeeded": 2, "failed": 1}, DEGRADED, "1 failed"),
    ("EphemeralJob", {}, {"phase": "Unknown", "match": 5, "succeeded": 5}, PROGRESSING, ""),
    ("EphemeralJob", {}, {"phase": "Succeeded", "match": 2, "succeeded": 2}, HEALTHY, "2 of 2"),
    ("EphemeralJob", {}, {"phase": "Failed", "match": 1, **failed("JobFailed", "too long")}, DEGRADED, "too long"),
    ("EphemeralJob", {}, {"phase": "Error", **failed("JobError", "invalid")}, DEGRADED, "invalid"),
    ("EphemeralJob", {"paused": True}, {"phase": "Paused", "match": 2}, SUSPENDED, "0 of 2"),
    (
        "EphemeralJob",
        {"paused": True},
        {"phase": "Paused", "match": 2, "succeeded": 2, **failed("JobSucceeded")},
        HEALTHY,
        "2 of 2",
    ),
    ("ContainerRecreateRequest", {"containers": [{"name": "a"}]}, None, PROGRESSING, "Waiting for the latest spec"),
    ("ContainerRecreateRequest", {"containers": [{"name": "a"}]}, {"phase": ""}, PROGRESSING, "Waiting"),
    ("ContainerRecreateRequest", {"containers": [{"name": "a"}]}, {"phase": "Recreating"}, PROGRESSING, "0 of 1"),
    (
        "ContainerRecreateRequest",
        {"containers": [{"name": "a"}]},
        {"phase": "Completed", "containerRecreateStates": [{"name": "a", "phase": "Succeeded"}]},
        HEALTHY,
        "1 of 1 containers recreated",
    ),
    (
        "ContainerRecreateRequest",
        {"containers": [{"name": "a"}]},
        {"phase": "Completed", "containerRecreateStates": [{"name": "a", "phase": "Failed", "message": "kill"}]},
        DEGRADED,
        "kill (0 of 1",
    ),
    (
        "ContainerRecreateRequest",
        {"containers": [{"name": "a"}]},
        {"phase": "Completed", "message": "pod has gone"},
        DEGRADED,
        "pod has gone (0 of 1",
    ),
    ("ImagePullJob", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("ImagePullJob", {}, {"startTime": "T", "desired": 3, "succeeded": 1}, PROGRESSING, "1 of 3 nodes have the image"),
    ("ImagePullJob", {}, {"startTime": "T", "completionTime": "T", "desired": 3, "succeeded": 3}, HEALTHY, "3 of 3"),
    ("ImagePullJob", {}, {"startTime": "T", "desired": 3, "succeeded": 2, "failed": 1}, DEGRADED, "1 failed"),
    ("ImagePullJob", {}, {"startTime": "T", "completionTime": "T", "desired": 3, "failed": 3}, DEGRADED, "3 failed"),
    ("ImagePullJob", {}, {"startTime": "T", "completionTime": "T"}, HEALTHY, "0 of 0"),
    ("ImagePullJob", {}, {"startTime": "T", "desired": 3, "succeeded": 3}, HEALTHY, ""),
    ("ImageListPullJob", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("ImageListPullJob", {}, {"startTime": "T", "desired": 2, "succeeded": 1, "completed": 1}, PROGRESSING, "1 of 2"),
    ("ImageListPullJob", {}, {"startTime": "T", "desired": 2, "succeeded": 2, "completed": 2}, HEALTHY, "2 of 2"),
    (
        "ImageListPullJob",
        {},
        {"startTime": "T", "desired": 2, "succeeded": 1, "completed": 2, "failedImageStatuses": [{"name": "a"}]},
        DEGRADED,
        "1 of 2 images are pulled, 1 failed",
    ),
    ("NodeImage", {}, None, HEALTHY, "0 of 0"),
    ("NodeImage", IMAGES, None, PROGRESSING, "0 of 2"),
    ("NodeImage", IMAGES, {"desired": 2, "succeeded": 1, "pulling": 1}, PROGRESSING, "1 of 2"),
    ("NodeImage", IMAGES, {"desired": 2, "succeeded": 1, "failed": 1}, DEGRADED, "1 failed"),
    ("NodeImage", IMAGES, {"desired": 2, "succeeded": 2}, HEALTHY, "2 of 2"),
    ("NodePodProbe", {}, None, HEALTHY, "0 of 0"),
    ("NodePodProbe", {"podProbes": [{"probes": [{}, {}]}]}, None, PROGRESSING, "0 of 2 probes have a result"),
    (
        "NodePodProbe",
        {"podProbes": [{"probes": [{}]}]},
        {"podProbeStatuses": [{"probeStates": [{"state": "Failed"}]}]},
        HEALTHY,
        "1 of 1",
    ),
    ("PersistentPodState", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("PersistentPodState", {}, SEEN | {"podStates": {"a": {}, "b": {}}}, HEALTHY, "2 pods"),
    ("PodProbeMarker", {}, {"observedGeneration": 1}, PROGRESSING, "Waiting for the latest spec"),
    ("PodProbeMarker", {}, SEEN, HEALTHY, "0 pods are probed"),
    ("PodUnavailableBudget", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("PodUnavailableBudget", {}, SEEN | {"currentAvailable": 1, "desiredAvailable": 2}, PROGRESSING, "2 are desired"),
    (
        "PodUnavailableBudget",
        {},
        SEEN | {"currentAvailable": 3, "desiredAvailable": 2, "unavailableAllowed": 1},
        HEALTHY,
        "3 pods are available, 1 of them",
    ),
    ("ResourceDistribution", {}, None, PROGRESSING, "Waiting for the latest spec"),
    ("ResourceDistribution", {}, SEEN | {"desired": 3, "succeeded": 3, "failed": 0}, HEALTHY, "3 of 3"),
    ("ResourceDistribution", {}, SEEN | {"desired": 3, "succeeded": 2}, PROGRESSING, "2 of 3"),
    ("ResourceDistribution", {}, SEEN | {"desired": 3, "succeeded": 2, "failed": 1}, DEGRADED, "1 failed"),
    (
        "ResourceDistribution",
        {},
        SEEN | {"desired": 3, "succeeded": 2, "failed": 1, **failed("Conflict", reason="exists already")},
        DEGRADED,
        "exists already (2 of 3",
    ),
    ("WorkloadSpread", {}, None, PROGRESSING, "Waiting for the latest spec"),
    (
        "WorkloadSpread",
        {},
        SEEN
        | {
            "subsetStatuses": [
                {"name": "a", "replicas": 2, "conditions": [{"type": "Schedulable", "status": "False"}]},
                {"name": "b", "replicas": 1},
            ]
        },
        HEALTHY,
        "3 pods in 2 subsets, 1 of them without room",
    ),
]


def document(kind: Kind, spec: Json, status: Json | None) -> Json:
    """Return an object in the storage version, in its second generation."""
    return {
        "apiVersion": kind.resource.api_version,
        "kind": kind.name,
        "metadata": {"name": "web", "generation": 2},
        "spec": copy.deepcopy(spec),
    } | ({} if status is None else {"status": copy.deepcopy(status)})


def in_versions(found: Json) -> Iterator[Json]:
    """Yield the object in each version, as our webhook converts it."""
    kind = NAMED[found["kind"]]
    convert = kind.rules().convert
    for version in kind.api_versions:
        own = version == found["apiVersion"]
        yield found | {"apiVersion": version} if own or convert is None else convert(copy.deepcopy(found), version)


@pytest.mark.parametrize(("kind", "spec", "status", "expected", "words"), ROWS)
def test_health(kind: str, spec: Json, status: Json | None, expected: str, words: str):
    for one in in_versions(document(NAMED[kind], spec, status)):
        found, message = scripts.health(LUA, one)
        assert (found, words in message) == (expected, True), (one["apiVersion"], message)


def test_every_kind_has_rows():
    assert {row[0] for row in ROWS} == set(NAMED)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_object_that_is_being_deleted(kind: Kind):
    going = document(kind, {}, None)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert scripts.health(LUA, going) == (PROGRESSING, "Pending deletion")


WORDS = ["", "50%", "100%", "-1", "x", "paused", "Failed", "OnDelete", "Never", "RollingUpdate", "NaN"]
LEAVES = st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats() | st.sampled_from(WORDS)


def fields(schema: Json) -> st.SearchStrategy[Any]:
    """Return a strategy of values for the schema: often of its shape, often of any other."""
    if "properties" in schema:
        own = {name: fields(one) for name, one in schema["properties"].items()}
        shaped: st.SearchStrategy[Any] = st.fixed_dictionaries({}, optional=own)
    elif "items" in schema:
        shaped = st.lists(fields(schema["items"]), max_size=3)
    elif isinstance(schema.get("additionalProperties"), dict):
        shaped = st.dictionaries(st.sampled_from(["a", "b"]), fields(schema["additionalProperties"]), max_size=2)
    elif schema.get("type") == "integer":
        shaped = st.integers(0, 5)
    elif schema.get("type") == "boolean":
        shaped = st.booleans()
    else:
        shaped = LEAVES
    return shaped | shaped | LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.sampled_from(WORDS), LEAVES)


@pytest.mark.parametrize(("kind", "version"), [(kind, version) for kind in KINDS for version in kind.versions])
def test_nothing_breaks_a_script(kind: Kind, version: str):
    schema = kind.rules().schema(version)
    metadata = st.fixed_dictionaries(
        {}, optional={"generation": LEAVES, "annotations": LEAVES, "labels": LEAVES, "deletionTimestamp": LEAVES}
    )
    hostile = st.fixed_dictionaries(
        {"apiVersion": st.just(f"{kind.resource.group}/{version}"), "kind": st.just(kind.name)},
        optional={"metadata": metadata | LEAVES, "spec": fields(schema.spec), "status": fields(schema.status)},
    )

    @settings(max_examples=30, deadline=None)
    @given(hostile)
    def check(found: Json) -> None:
        status, message = scripts.health(LUA, found)
        assert status in (HEALTHY, PROGRESSING, SUSPENDED, DEGRADED)
        assert isinstance(message, str)
        folder = scripts.ROOT / "argocd" / kind.resource.group / kind.name / "actions"
        if folder.exists():
            offered = scripts.disabled_actions(LUA, found)
            assert all(isinstance(disabled, bool) for disabled in offered.values())
            for action in offered:
                scripts.acted(LUA, found, action)

    check()
