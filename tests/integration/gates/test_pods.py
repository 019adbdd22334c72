"""Pods of others: the readiness gate that each gets, and owners of kinds that a ConfigMap names."""

import json

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.podrules import LACKS_READINESS_GATE
from flotilla_common.api.resources import CONFIG_MAP, POD
from tests.support.fleet import Fleet
from tests.support.persistent import ASKS, HOST, asked_namespaces, exists, recorded_as_placed, records
from tests.support.podrules import pod_rules
from tests.support.workspace import Workspace, condition, is_ready
from tests.testkit.documents import Json, typed
from tests.testkit.manifests import manifest

WATCHED = (STATEFUL_SET, PERSISTENT_POD_STATE)
PASSES = 'controller_runtime_reconcile_total{controller="pod-readiness-controller",result="success"} '
REGISTERED = "kruise-mutating-webhook-configuration"
GAME_SETS = manifest("pod-webhook-game-sets")
WHITE_LIST = json.dumps({"workloads": [{"Group": "games.example.io", "Version": "v1", "Kind": "GameSet"}]})
CONFIGURATION: Json = typed(
    CONFIG_MAP, "kruise-configuration", "kruise-system", data={"PPS_Watch_Custom_Workload_WhiteList": WHITE_LIST}
)


def passes(flotilla: Fleet) -> float:
    """Return how many pods the controller of readiness has looked at."""
    lines = flotilla.members["sidecar"].metrics_text().splitlines()
    return sum(float(line.removeprefix(PASSES)) for line in lines if line.startswith(PASSES))


def test_every_pod_gets_gate_and_condition(flotilla: Fleet, space: Workspace):
    """The webhook adds the gate, and the service sets its condition; pods of CloneSets have both from their owner."""
    assert LACKS_READINESS_GATE in pod_rules(space.cluster)
    before = passes(flotilla)
    for name in ("pod", "deployment", "clone-set"):
        space.apply(manifest(f"pod-readiness-{name}"))
    space.until(lambda: len(space.pods) == 7 and all(map(is_ready, space.pods.values())))
    bare = space.pod("bare")
    assert [gate["conditionType"] for gate in bare["spec"]["readinessGates"]] == ["KruisePodReady"]
    assert condition(bare, "KruisePodReady")["status"] == "True"
    assert 4 <= passes(flotilla) - before <= 8  # bare and web's three; the CloneSet's are not looked at
    assert "cloneset_scale_expectation_leakage" in flotilla.members["cloneset"].metrics_text()


def test_kinds_that_a_config_map_names_come_and_go(flotilla: Fleet, space: Workspace):
    """PersistentPodStates of other kinds (persistentpodstate.md §7)."""
    cluster = flotilla.cluster
    cluster.apply(GAME_SETS)
    cluster.kubectl("wait", "--for=condition=established", "crd/gamesets.games.example.io")
    game = {"apiVersion": "games.example.io/v1", "kind": "GameSet", "metadata": {"name": "db", "annotations": ASKS}}
    space.create(game | {"spec": {"replicas": 2}})
    made = space.read("gamesets", "db")
    cluster.apply(CONFIGURATION)
    space.until(lambda: exists(space))
    owner = {key: made[key] for key in ("apiVersion", "kind")} | {"name": "db", "uid": made["metadata"]["uid"]}

    def create(name: str) -> None:
        spec = {"containers": [{"name": "main", "image": "nginx:1"}]}
        space.create(typed(POD, name, ownerReferences=[owner | {"controller": True}], spec=spec))

    for name in ("db-0", "db-1"):
        create(name)
    space.until(lambda: recorded_as_placed(space, 2))
    space.kubectl("delete", "pod", "db-1")
    create("db-1")
    host = records(space)["db-1"]["nodeTopologyLabels"][HOST]
    assert host in json.dumps(space.read("pod", "db-1")["spec"]["affinity"])

    cluster.kubectl("-n", "kruise-system", "delete", "configmap", "kruise-configuration")
    assert space.name in asked_namespaces(cluster)
    space.until(lambda: "GameSet" not in json.dumps(cluster.read("mutatingwebhookconfiguration", REGISTERED)))
    assert len(records(space)) == 2, "what is no longer followed stays as it is"
