"""Pods of StatefulSets that go back to where they were (persistentpodstate.md §9)."""

import json
from collections.abc import Iterator

import pytest

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.support.fleet import Fleet
from tests.support.persistent import (
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
    """Rows 1, 2 and 5 to 7: asked for, switched off, when the webhook leaves the path of pods, and on again."""
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

    recorded = records(space)
    space.kubectl("annotate", SET, f"{AUTO}-")
    space.until(lambda: not exists(space))
    space.until(lambda: space.name not in asked_namespaces(space.cluster))
    space.kubectl("annotate", SET, f"{AUTO}=true")
    space.until(lambda: records(space) == recorded)
    space.kubectl("annotate", SET, "kruise.io/required-persistent-topology-")
    space.until(lambda: all(list(state["nodeTopologyLabels"]) == [HOST] for state in records(space).values()))
    assert "requiredPersistentTopology" not in space.read("persistentpodstate", "db")["spec"]


def test_who_creates_one_finds_the_rule_in_use(space: Workspace):
    """The webhook is called for the first pod after the answer, and a dry run arms nothing."""
    dry = space.kubectl("create", "-f", "-", "--dry-run=server", stdin=json.dumps(by_hand()))
    assert "dry run" in dry
    assert space.name not in asked_namespaces(space.cluster)
    said = space.kubectl("create", "-f", "-", stdin=json.dumps(by_hand()))
    assert "Warning" not in said
    assert space.name in asked_namespaces(space.cluster)
