"""The webhook in the path of pods, on a control plane of its own (persistentpodstate.md §6, §7).

Covers the pods that it is called for, its outage, and workloads of kinds that a ConfigMap names.
"""

import json
from collections.abc import Iterator

import pytest

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import CONFIG_MAP
from tests.support.fleet import Fleet
from tests.support.persistent import ASKS, HOST, asked_namespaces, built_in, exists, places, recorded_as_placed, records
from tests.support.workspace import Workspace, new_namespace, watched
from tests.testkit.documents import Json, typed
from tests.testkit.manifests import manifest

FLAGS = ()
CALLS = 'controller_runtime_webhook_requests_total{code="200",webhook="/mutate-pod"}'
REGISTERED = "kruise-mutating-webhook-configuration"
GAME_SETS = manifest("pod-webhook-game-sets")
WHITE_LIST = json.dumps({"workloads": [{"Group": "games.example.io", "Version": "v1", "Kind": "GameSet"}]})
CONFIGURATION: Json = typed(
    CONFIG_MAP, "kruise-configuration", "kruise-system", data={"PPS_Watch_Custom_Workload_WhiteList": WHITE_LIST}
)


@pytest.fixture
def space(own: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace whose PersistentPodStates are watched, too."""
    with watched(own.cluster, request.node.nodeid, STATEFUL_SET, PERSISTENT_POD_STATE) as made:
        yield made


def pod(name: str, *owners: Json) -> str:
    metadata = {"name": name, "ownerReferences": owners}
    spec = {"containers": [{"name": "main", "image": "nginx:1"}]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.mark.asyncio(loop_scope="module")
async def test_only_pods_that_may_go_back_are_asked_about(own: Fleet, space: Workspace, request: pytest.FixtureRequest):
    elsewhere = new_namespace(own.cluster, f"{request.node.nodeid}-elsewhere")
    space.apply(built_in(2))
    space.until(lambda: recorded_as_placed(space, 2))
    space.kubectl("delete", "pod", "db-0")
    space.until(lambda: recorded_as_placed(space, 2))
    calls = own.members["webhook"].metric(CALLS)
    assert calls >= 2  # the probe, and a pod
    space.create(pod("bare"))
    own.cluster.kubectl("-n", elsewhere, "create", "-f", "-", stdin=json.dumps(built_in(2, {})))
    own.cluster.kubectl("-n", elsewhere, "rollout", "status", "statefulset/db")
    assert own.members["webhook"].metric(CALLS) == calls

    own.kill("webhook")
    before = places(space)
    space.create(pod("another"))
    own.cluster.kubectl("-n", elsewhere, "scale", "statefulset/db", "--replicas=3")
    own.cluster.kubectl("-n", elsewhere, "rollout", "status", "statefulset/db")
    space.kubectl("delete", "pod", "db-1")
    await own.start("webhook")  # only now can it come back, and to the right place
    space.until(lambda: {name: places(space).get(name) for name in before} == before)


def test_kinds_that_a_config_map_names_come_and_go(own: Fleet, space: Workspace):
    own.cluster.apply(GAME_SETS)
    own.cluster.kubectl("wait", "--for=condition=established", "crd/gamesets.games.example.io")
    game = {"apiVersion": "games.example.io/v1", "kind": "GameSet", "metadata": {"name": "db", "annotations": ASKS}}
    manifest = json.dumps(game | {"spec": {"replicas": 2}})
    made = json.loads(space.kubectl("create", "-f", "-", "-o", "json", stdin=manifest))
    own.cluster.apply(CONFIGURATION)
    space.until(lambda: exists(space))
    owner = {key: made[key] for key in ("apiVersion", "kind")} | {"name": "db", "uid": made["metadata"]["uid"]}
    for name in ("db-0", "db-1"):
        space.create(pod(name, owner | {"controller": True}))
    space.until(lambda: recorded_as_placed(space, 2))
    space.kubectl("delete", "pod", "db-1")
    space.create(pod("db-1", owner | {"controller": True}))
    host = records(space)["db-1"]["nodeTopologyLabels"][HOST]
    assert host in json.dumps(space.read("pod", "db-1")["spec"]["affinity"])

    own.cluster.kubectl("-n", "kruise-system", "delete", "configmap", "kruise-configuration")
    assert space.name in asked_namespaces(own.cluster)
    space.until(lambda: "GameSet" not in json.dumps(own.cluster.read("mutatingwebhookconfiguration", REGISTERED)))
    assert len(records(space)) == 2, "what is no longer followed stays as it is"
