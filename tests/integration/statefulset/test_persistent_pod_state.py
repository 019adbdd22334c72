"""Pods of StatefulSets that go back to where they were (persistentpodstate.md §9)."""

import json
from collections.abc import Iterator

import pytest

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.fleet import Fleet
from tests.support.persistent import (
    ASKS,
    HOST,
    INJECTED,
    ZONE,
    asked_namespaces,
    built_in,
    by_hand,
    exists,
    places,
    recorded_as_placed,
    records,
)
from tests.support.stateful import statefulset
from tests.support.workspace import Workspace, watched
from tests.testkit.documents import Json

SET = "statefulsets.apps/db"
AUTO = "kruise.io/auto-generate-persistent-pod-state"


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace whose PersistentPodStates are watched, too."""
    with watched(shared.cluster, request.node.nodeid, STATEFUL_SET, PERSISTENT_POD_STATE) as made:
        yield made


def bound_to(pod: Json) -> tuple[str, list[str]]:
    """Return the zone that a pod requires, and the hosts that it prefers."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    hosts = [value for term in terms for one in term["preference"]["matchExpressions"] for value in one["values"]]
    return pod["spec"].get("nodeSelector", {}).get(ZONE, ""), hosts


def test_pods_made_anew_go_back(space: Workspace):
    """Rows 1 and 2."""
    space.apply(built_in())
    space.until(lambda: recorded_as_placed(space, 3))
    before, uids = places(space), {pod["metadata"]["uid"] for pod in space.pods.values()}
    state = space.read("persistentpodstate", "db")
    assert state["spec"]["requiredPersistentTopology"] == {"keys": [ZONE]}
    assert state["spec"]["preferredPersistentTopology"] == [{"weight": 100, "preference": {"keys": [HOST]}}]
    assert state["metadata"]["ownerReferences"][0]["name"] == "db"
    assert all(not pod["metadata"].get("annotations", {}).get(INJECTED) for pod in space.pods.values())
    assert space.name in asked_namespaces(space.cluster)

    space.kubectl("rollout", "restart", SET)
    space.until(lambda: places(space) == before and not uids & {pod["metadata"]["uid"] for pod in space.pods.values()})
    for name, pod in space.pods.items():
        labels = records(space)[name]["nodeTopologyLabels"]
        assert bound_to(pod) == (labels[ZONE], [before[name]])
        assert pod["metadata"]["annotations"][INJECTED] == "db"


def test_records_follow_the_number_of_replicas(space: Workspace):
    """Rows 3, 4 and 22."""
    space.apply(built_in())
    space.until(lambda: recorded_as_placed(space, 3))
    space.kubectl("scale", SET, "--replicas=1")
    space.until(lambda: list(records(space)) == ["db-0"])
    space.kubectl("scale", SET, "--replicas=3")
    space.until(lambda: recorded_as_placed(space, 3))
    assert bound_to(space.pod("db-2")) == ("", [])
    space.kubectl("scale", SET, "--replicas=0")
    space.until(lambda: exists(space) and not records(space))


def test_a_users_retention_policy_outlives_scaling(space: Workspace):
    """Rows 8 and 9."""
    space.apply(built_in())
    space.until(lambda: recorded_as_placed(space, 3))
    before = places(space)
    space.patch({"spec": {"persistentPodStateRetentionPolicy": "WhenDeleted"}}, "db", "persistentpodstate")
    space.kubectl("scale", SET, "--replicas=1")
    space.until(lambda: list(space.pods) == ["db-0"])
    space.kubectl("scale", SET, "--replicas=3")
    space.until(lambda: places(space) == before)
    assert bound_to(space.pod("db-2"))[1] == [before["db-2"]]


def test_the_annotation_switches_it_off_and_on(space: Workspace):
    """Rows 5, 6 and 7; and the webhook leaves the path of pods again."""
    space.apply(built_in())
    space.until(lambda: recorded_as_placed(space, 3))
    before = records(space)
    space.kubectl("annotate", SET, f"{AUTO}-")
    space.until(lambda: not exists(space))
    space.until(lambda: space.name not in asked_namespaces(space.cluster))
    space.kubectl("annotate", SET, f"{AUTO}=true")
    space.until(lambda: records(space) == before)
    space.kubectl("annotate", SET, "kruise.io/required-persistent-topology-")
    space.until(lambda: all(list(state["nodeTopologyLabels"]) == [HOST] for state in records(space).values()))
    assert "requiredPersistentTopology" not in space.read("persistentpodstate", "db")["spec"]


def test_a_hand_made_one_stays_without_its_workload(space: Workspace):
    """Row 11."""
    space.apply(built_in(annotations={}))
    space.apply(by_hand())
    space.until(lambda: recorded_as_placed(space, 3))
    space.kubectl("delete", SET)
    space.until(lambda: exists(space) and not records(space))


def test_a_set_of_ours_with_reserved_ordinals(space: Workspace):
    """Rows 1 and 21 with a StatefulSet of apps.kruise.io."""
    manifest = statefulset(3, name="db", reserveOrdinals=[1])
    manifest["metadata"]["annotations"] = ASKS
    space.apply(manifest)
    space.until(lambda: sorted(records(space)) == ["db-0", "db-2", "db-3"])
    space.patch({"spec": {"reserveOrdinals": ["1-2"]}}, "db", "statefulsets.apps.kruise.io")
    space.until(lambda: sorted(records(space)) == ["db-0", "db-3", "db-4"])
    before = places(space)
    space.kubectl("delete", "pod", "db-3")
    space.until(lambda: places(space) == before and bound_to(space.pod("db-3"))[1] == [before["db-3"]])


def test_who_creates_one_finds_the_rule_in_use(space: Workspace):
    """The webhook is called for the first pod after the answer, and a dry run arms nothing."""
    dry = space.kubectl("create", "-f", "-", "--dry-run=server", stdin=json.dumps(by_hand()))
    assert "dry run" in dry
    assert space.name not in asked_namespaces(space.cluster)
    said = space.kubectl("create", "-f", "-", stdin=json.dumps(by_hand()))
    assert "Warning" not in said
    assert space.name in asked_namespaces(space.cluster)
