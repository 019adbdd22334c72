"""Each metric of each kind, from an object that has everything."""

from typing import Any

import pytest

from flotilla_statemetrics.families import AnyKind
from flotilla_statemetrics.kinds.broadcastjobs import BROADCAST_JOBS
from flotilla_statemetrics.kinds.clonesets import CLONE_SETS
from flotilla_statemetrics.kinds.daemonsets import DAEMON_SETS
from flotilla_statemetrics.kinds.sidecarsets import SIDECAR_SETS
from flotilla_statemetrics.kinds.statefulsets import ADVANCED_STATEFUL_SETS, STATEFUL_SETS
from flotilla_statemetrics.kinds.workloadspreads import WORKLOAD_SPREADS
from tests.testkit.documents import Json, metadata
from tests.unit.statemetrics.scraped import scraped, short

META: Json = metadata("web", "shop", generation=4, created="2026-03-01T12:00:00Z", labels={"app": "web"})
CREATED = 1772366400.0
REPLICAS: Json = {"observedGeneration": 3, "replicas": 10, "readyReplicas": 8, "availableReplicas": 7}


def rolling(**members: Any) -> Json:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": members}}


def of(kind: AnyKind, spec: Json, status: Json) -> dict[str, float]:
    """Return the series without the labels of the object itself, and without the beginning that all names share."""
    found = short(scraped(kind, {"metadata": META, "spec": spec, "status": status}), "namespace", *kind.labels)
    assert {name.split("_")[0] for name in found} == {"kruise"}
    return {name.split("_", 2)[2]: value for name, value in found.items()}


def condition(name: str, kind: str, true: str) -> dict[str, float]:
    return {f"{name}{{condition={kind},status={one}}}": float(one == true) for one in ("true", "false", "unknown")}


def test_a_cloneset() -> None:
    spec = {"replicas": 10, **rolling(partition="25%", maxUnavailable="15%", maxSurge="15%", paused=False)}
    status = {**REPLICAS, "updatedReplicas": 6, "updatedReadyReplicas": 5}
    status["conditions"] = [{"type": "FailedScale", "status": "False"}]
    assert of(CLONE_SETS, spec, status) == {
        "created{}": CREATED,
        "labels{label_app=web}": 1,
        "metadata_generation{}": 4,
        "spec_metadata_generation{}": 4,
        "spec_replicas{}": 10,
        "spec_paused{}": 0,
        "spec_strategy_partition{}": 3,
        "spec_strategy_rollingupdate_max_surge{}": 2,
        "spec_strategy_rollingupdate_max_unavailable{}": 1,
        "strategy_type{type=ReCreate}": 1,
        "spec_strategy_type{type=ReCreate}": 1,
        "status_observed_generation{}": 3,
        "status_replicas{}": 10,
        "status_replicas_ready{}": 8,
        "status_replicas_available{}": 7,
        "status_replicas_unavailable{}": 3,
        "status_replicas_updated{}": 6,
        "status_replicas_updated_ready{}": 5,
        **condition("status_condition", "FailedScale", "false"),
    }


@pytest.mark.parametrize(
    ("strategy", "word"),
    [
        ({"type": "OnDelete"}, "OnDelete"),
        ({"type": "RollingUpdate"}, "ReCreate"),
        ({"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}, "InPlaceIfPossible"),
    ],
)
def test_the_strategy_of_a_cloneset_is_that_of_v1alpha1(strategy: dict[str, Any], word: str) -> None:
    """kruise-state-metrics reads v1alpha1, and dashboards select by its words."""
    assert of(CLONE_SETS, {"updateStrategy": strategy}, {})[f"strategy_type{{type={word}}}"] == 1


@pytest.mark.parametrize(
    ("members", "unavailable", "surge", "partition"),
    [
        pytest.param({}, 2, 0, 0, id="defaults"),
        pytest.param({"maxUnavailable": "15%"}, 2, 0, 0, id="rounded up without surge"),
        pytest.param({"maxUnavailable": "15%", "maxSurge": 1, "paused": True}, 2, 1, 0, id="no surge while paused"),
        pytest.param({"maxUnavailable": 0, "maxSurge": "1%"}, 0, 1, 0, id="surge is rounded up"),
        pytest.param({"partition": "99%"}, 2, 0, 9, id="one pod is updated below 100%"),
        pytest.param({"partition": 50}, 2, 0, 10, id="no more than replicas"),
        pytest.param({"partition": None}, 2, 0, 0, id="null"),
    ],
)
def test_the_numbers_of_a_cloneset_are_pods(members: Json, unavailable: int, surge: int, partition: int) -> None:
    members = {key: value for key, value in members.items() if value is not None}
    found = of(CLONE_SETS, {"replicas": 10, **rolling(**members)}, {})
    assert found["spec_strategy_rollingupdate_max_unavailable{}"] == unavailable
    assert found["spec_strategy_rollingupdate_max_surge{}"] == surge
    assert found["spec_strategy_partition{}"] == partition


def test_what_cannot_be_read_has_no_series() -> None:
    found = of(CLONE_SETS, {"replicas": 10, **rolling(maxUnavailable="many", partition="x%")}, REPLICAS)
    assert not {name for name in found if "max_unavailable" in name or "partition" in name}
    assert found["status_replicas{}"] == 10


def test_a_statefulset() -> None:
    spec = {"replicas": 10, **rolling(maxUnavailable="25%"), "reserveOrdinals": [1, "5-7"]}
    revisions = {"currentRevision": "web-1", "updateRevision": "web-2", "currentReplicas": 4, "updatedReplicas": 6}
    status = {**REPLICAS, **revisions, "conditions": [{"type": "FailedUpdate", "status": "True"}]}
    expected = {
        "created{}": CREATED,
        "labels{label_app=web}": 1,
        "metadata_generation{}": 4,
        "spec_replicas{}": 10,
        "spec_reserveordinals{ordinal=1}": 1,
        "spec_reserveordinals{ordinal=5-7}": 1,
        "spec_strategy_rollingupdate_max_unavailable{}": 2,
        "status_observed_generation{}": 3,
        "status_replicas{}": 10,
        "status_replicas_ready{}": 8,
        "status_replicas_available{}": 7,
        "status_replicas_current{}": 4,
        "status_replicas_updated{}": 6,
        "status_current_revision{revision=web-1}": 1,
        "status_update_revision{revision=web-2}": 1,
        **condition("status_condition", "FailedUpdate", "true"),
    }
    assert of(STATEFUL_SETS, spec, status) == expected | {"spec_strategy_type{type=RollingUpdate}": 1}
    older = expected | {"strategy_type{type=RollingUpdate}": 1, "replicas{}": 10}
    assert of(ADVANCED_STATEFUL_SETS, spec, status) == older


def test_a_statefulset_always_moves() -> None:
    found = of(STATEFUL_SETS, {"replicas": 3, **rolling(maxUnavailable="10%")}, {})
    assert found["spec_strategy_rollingupdate_max_unavailable{}"] == 1


def test_a_daemonset() -> None:
    status = {
        "currentNumberScheduled": 6,
        "desiredNumberScheduled": 7,
        "numberAvailable": 4,
        "numberMisscheduled": 1,
        "numberReady": 5,
        "numberUnavailable": 3,
        "observedGeneration": 3,
        "updatedNumberScheduled": 2,
        "conditions": [{"type": "X", "status": "Unknown"}],
    }
    assert of(DAEMON_SETS, rolling(partition="50%", maxSurge="10%"), status) == {
        "created{}": CREATED,
        "labels{label_app=web}": 1,
        "metadata_generation{}": 4,
        "spec_strategy_partition{}": 3,
        "spec_strategy_rollingupdate_max_surge{}": 1,
        "spec_strategy_type{type=RollingUpdate}": 1,
        "status_current_number_scheduled{}": 6,
        "status_desired_number_scheduled{}": 7,
        "status_number_available{}": 4,
        "status_number_misscheduled{}": 1,
        "status_number_ready{}": 5,
        "status_number_unavailable{}": 3,
        "status_observed_generation{}": 3,
        "status_updated_number_scheduled{}": 2,
        **condition("status_condition", "X", "unknown"),
    }


def test_a_sidecarset() -> None:
    hot = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
        "updateStrategy": {"type": "RollingUpdate", "partition": "50%", "maxUnavailable": "15%"},
        "containers": [
            {"name": "mesh", "podInjectPolicy": "BeforeAppContainer", "shareVolumePolicy": {"type": "enabled"}},
            {"name": "log", "upgradeStrategy": hot},
        ],
    }
    status = {"matchedPods": 10, "updatedPods": 6, "readyPods": 8, "updatedReadyPods": 5, "observedGeneration": 3}
    found = scraped(SIDECAR_SETS, {"metadata": META, "spec": spec, "status": status})
    assert {dict(labels)["sidecarset"] for _, labels in found} == {"web"}
    assert {name.partition("_sidecarset_")[2]: value for name, value in short(found, "sidecarset").items()} == {
        "created{}": CREATED,
        "labels{label_app=web}": 1,
        "spec_metadata_generation{}": 4,
        "spec_namespcace{namespace=shop}": 1,
        "spec_strategy_partition{}": 5,
        "spec_strategy_rollingupdate_max_unavailable{}": 2,
        "spec_strategy_type{type=RollingUpdate}": 1,
        "spec_containers_injectpolicy{container=mesh,policy=BeforeAppContainer}": 1,
        "spec_containers_volumepolicy{container=mesh,policy=enabled}": 1,
        "spec_containers_strategy_type{container=log,type=HotUpgrade}": 1,
        "spec_containers_strategy_hotupgradeemptyimage{container=log,image=empty:1}": 1,
        "status_observed_generation{}": 3,
        "status_replicas_matched{}": 10,
        "status_replicas_updated{}": 6,
        "status_replicas_ready{}": 8,
        "status_replicas_updated_ready{}": 5,
    }


def test_a_broadcastjob() -> None:
    policy = {"type": "Always", "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 90}
    status = {"active": 1, "succeeded": 2, "failed": 3, "desired": 7}
    status["conditions"] = [{"type": "Complete", "status": "True"}]
    assert of(BROADCAST_JOBS, {"parallelism": "50%", "completionPolicy": policy}, status) == {
        "created{}": CREATED,
        "labels{label_app=web}": 1,
        "metadata_generation{}": 4,
        "status_spec_parallelism{}": 4,
        "spec_strategy_activedeadline_seconds{}": 60,
        "spec_strategy_ttl_seconds{}": 90,
        "spec_strategy_type{type=Always}": 1,
        "status_active{}": 1,
        "status_succeeded{}": 2,
        "status_failed{}": 3,
        "status_desired{}": 7,
        **condition("status_condition", "Complete", "true"),
    }
    assert not {name for name in of(BROADCAST_JOBS, {}, {}) if "deadline" in name or "ttl" in name or "par" in name}


def test_a_workloadspread() -> None:
    assert of(WORKLOAD_SPREADS, {}, {})["spec_strategy_type{type=Fixed}"] == 1
    subsets = [{"name": "a", "maxReplicas": 3}, {"name": "b", "maxReplicas": "50%"}, {"name": "c"}]
    books = [{"name": "a", "replicas": 3, "missingReplicas": 0}, {"name": "c", "replicas": 4, "missingReplicas": -1}]
    spec = {"subsets": subsets, "scheduleStrategy": {"type": "Adaptive"}}
    assert of(WORKLOAD_SPREADS, spec, {"subsetStatuses": books}) == {
        "created{}": CREATED,
        "labels{label_app=web}": 1,
        "spec_metadata_generation{}": 4,
        "spec_strategy_type{type=Adaptive}": 1,
        "spec_subsets_max_replicas{subset=a}": 3,
        "status_subset_replicas{subset=a}": 3,
        "status_subset_replicas{subset=c}": 4,
        "status_subset_replicas_missing{subset=a}": 0,
        "status_subset_replicas_missing{subset=c}": -1,
    }
