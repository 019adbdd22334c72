"""The WorkloadSpread that OpenKruise left, with its pods.

Nothing is written when it is taken over, and counts continue from their state.
"""

from datetime import UTC, datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.workloadspread.book import chosen, matched_of
from flotilla_common.api.kinds.workloadspread.types import VERSION_IGNORED, WorkloadSpread
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import Plan
from flotilla_topology.workloadspread.plan import plan
from flotilla_topology.workloadspread.snapshot import WorkloadSpreadSnapshot, target_of
from tests.testkit.documents import Json, decoded
from tests.unit.workload.openkruise import cloneset, documents, stored
from tests.unit.workloadspread.build import costs

NOW = datetime(2026, 11, 23, 8, 0, 0, tzinfo=UTC)
PODS = [one for one in documents("pods") if one["metadata"]["name"].startswith("spread-")]
STORED = decoded(stored("workloadspreads"), WorkloadSpread)


def planned(*pods: Json) -> Plan:
    """Plan a pass with these pods."""
    workload = decoded(cloneset("spread"), Workload)
    typed = decoded(pods, list[Pod])
    return plan(
        WorkloadSpreadSnapshot(
            spread=STORED,
            target=target_of(CLONE_SET, workload, ("spec.replicas",), latest=VERSION_IGNORED, tracked=False),
            pods=typed,
            versions={pod.metadata.uid: VERSION_IGNORED for pod in typed},
        ),
        NOW,
    )


def test_nothing_is_written_when_it_is_taken_over() -> None:
    made = planned(*PODS)
    assert (made.actions, made.status, made.events) == ([], None, ())
    assert [reason.code for reason in made.reasons] == ["SubsetFull"]
    assert made.numbers == {"replicas": 4, "pods": 4, "adopted": 0, "unspread": 0}


def test_the_next_pod_goes_where_there_is_room() -> None:
    place = chosen(STORED.status.versioned_subset_statuses[VERSION_IGNORED])
    assert place is not None
    assert place.name == "b"


def test_a_pod_that_has_gone_leaves_its_place() -> None:
    gone, *others = (one for one in PODS if '"subset":"a"' in str(one["metadata"]["annotations"]))
    made = planned(*(one for one in PODS if one is not gone))
    assert (costs(made), len(others)) == ({}, 1)
    assert made.status is not None
    first = made.status.body["status"]["subsetStatuses"][0]
    assert (first["name"], first["replicas"], first["missingReplicas"]) == ("a", 1, 1)


def test_pods_say_where_they_are() -> None:
    matched = [matched_of(one["metadata"]["annotations"]) for one in PODS]
    assert sorted(one.subset for one in matched if one is not None) == ["a", "a", "b", "b"]
