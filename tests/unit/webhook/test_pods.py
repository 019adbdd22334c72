"""The pod webhook: its steps for readiness and PersistentPodStates (webhooks.md §7, persistentpodstate.md §6)."""

from typing import Any

import pytest

from flotilla_common.api.admission.review import ALLOWED, Request
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.resources import NODE
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import ApiError
from flotilla_webhook.chain import readiness_step
from flotilla_webhook.pods.activation import ActiveRules
from flotilla_webhook.pods.admission import PodAdmission
from flotilla_webhook.pods.persistent import UNSEEN_SECONDS, PersistentStates
from tests.support.fake_clock import FakeClock
from tests.testkit.admission import applied, configure, new_pod
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

O, H, Z = "kubernetes.io/os", "kubernetes.io/hostname", "zone"  # noqa: E741 - as the worked examples say it
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APPS, OURS, GAMES = "apps/v1", "apps.kruise.io/v1alpha1", "games.io/v1"
RECORD = {"nodeName": "n2", "nodeTopologyLabels": {O: "linux", H: "n2"}}
WHITE_LIST = '{"workloads":[{"Group":"games.io","Version":"v1","Kind":"GameSet"}]}'


class World:
    """The pod webhook over a fake cluster."""

    def __init__(self, gates: str = "") -> None:
        self.cluster, self.clock = FakeApi(), FakeClock()
        self.node("n2", **{O: "linux", H: "n2"})
        self.states = PersistentStates(self.cluster.api, self.clock, "kruise-system")
        steps = [readiness_step(Gates.parse(gates)), self.states.step()]
        self.pods = PodAdmission(steps, ActiveRules(self.clock))

    def state(self, *, api: str = APPS, kind: str = "StatefulSet", record: Json | None = None, **spec: Any) -> None:
        """Store PersistentPodState `p`, with this record of pod `s-0`."""
        target = {"apiVersion": api, "kind": kind, "name": "s"}
        given = spec or {
            "requiredPersistentTopology": {"keys": [O, Z]},
            "preferredPersistentTopology": [{"weight": 7, "preference": {"keys": [H, Z]}}],
        }
        document = {
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {"targetRef": target, **given},
            "status": {"podStates": {"s-0": record or RECORD}},
        }
        self.cluster.put(PERSISTENT_POD_STATE, document)

    def node(self, name: str, **labels: str) -> None:
        self.cluster.put(NODE, {"metadata": {"name": name, "labels": labels}})

    def configure(self, white_list: str) -> None:
        configure(self.cluster, PPS_Watch_Custom_Workload_WhiteList=white_list)

    async def admit(self, document: Json) -> Json:
        """Return the pod as it is stored."""
        answer = await self.pods.mutate(new_pod(document))
        assert answer.allowed, answer.message
        return applied(document, answer)


def pod(name: str = "s-0", api: str = APPS, kind: str = "StatefulSet", **spec: Any) -> Json:
    owner = {"apiVersion": api, "kind": kind, "name": "s", "controller": True}
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"containers": [], **spec}}


# Step 1

READY = {"conditionType": "KruisePodReady"}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param({}, [READY], id="row 4"),
        pytest.param({"readinessGates": [{"conditionType": "x"}]}, [{"conditionType": "x"}, READY], id="appended"),
        pytest.param({"readinessGates": [READY]}, [READY], id="row 3: not added twice"),
    ],
)
async def test_readiness_gate(held: Json, expected: list[Json]) -> None:
    world = World("KruisePodReadinessGate=true")
    admitted = await world.admit({"metadata": {"generateName": "p-"}, "spec": held})
    assert admitted == {"metadata": {"generateName": "p-"}, "spec": {"readinessGates": expected}}


async def test_other_pod_requests() -> None:
    world = World("KruisePodReadinessGate=true")
    assert (await world.pods.mutate(new_pod(None))).code == 400
    assert await world.pods.mutate(Request(uid="u", operation="UPDATE", object={}, old_object={})) == ALLOWED
    assert await World().pods.mutate(new_pod(pod())) == ALLOWED


# Step 6


async def test_a_pod_goes_back() -> None:
    world = World()
    world.state()
    admitted = await world.admit(pod())
    assert admitted["metadata"]["annotations"] == {"kruise.io/injected-persistent-pod-state": "p"}
    assert admitted["spec"]["nodeSelector"] == {O: "linux"}  # Z is not recorded
    expressions = [{"key": H, "operator": "In", "values": ["n2"]}]
    terms = [{"weight": 7, "preference": {"matchExpressions": expressions}}]
    assert admitted["spec"]["affinity"] == {"nodeAffinity": {PREFERRED: terms}}


async def test_what_a_pod_has_stays() -> None:
    """Row 25: recorded values win over equal keys."""
    world = World()
    world.state()
    other = {"weight": 1, "preference": {"matchExpressions": []}}
    affinity = {"podAffinity": {"x": 1}, "nodeAffinity": {PREFERRED: [other], "required": "y"}}
    admitted = await world.admit(pod(nodeSelector={O: "windows", "disk": "ssd"}, affinity=affinity))
    assert admitted["spec"]["nodeSelector"] == {O: "linux", "disk": "ssd"}
    node = admitted["spec"]["affinity"]["nodeAffinity"]
    assert [term["weight"] for term in node[PREFERRED]] == [1, 7]
    assert node["required"] == "y"
    assert admitted["spec"]["affinity"]["podAffinity"] == {"x": 1}


@pytest.mark.parametrize(
    ("state", "document"),
    [
        pytest.param({}, {"metadata": {"name": "s-0"}, "spec": {}}, id="row 26: no owner"),
        pytest.param({}, pod("s-1"), id="row 4: no record"),
        pytest.param({}, pod(api=OURS), id="a namesake of another group"),
        pytest.param({}, pod(api="games.io/v1", kind="GameSet"), id="a kind that nobody named"),
        pytest.param({"record": {"nodeName": "n2"}}, pod(), id="row 20: no labels"),
        pytest.param({"requiredPersistentTopology": {"keys": [Z]}}, pod(), id="keys that are not recorded"),
        pytest.param(
            {"preferredPersistentTopology": [{"weight": 1, "preference": {"keys": [Z]}}]},
            pod(),
            id="a term that would match nothing",
        ),
    ],
)
async def test_left_alone(state: Json, document: Json) -> None:
    world = World()
    world.state(**state)
    assert await world.admit(document) == document


async def test_row_17_versions_do_not_matter() -> None:
    world = World()
    world.state(api="apps.kruise.io/v1beta1")
    assert "nodeSelector" in (await world.admit(pod(api=OURS)))["spec"]


PLACE = {Z: "z1", H: "n1"}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param({"n1": PLACE}, PLACE, id="it is there"),
        pytest.param({"n3": {Z: "z1", H: "n3"}}, {Z: "z1"}, id="the host is gone, the zone is not"),
        pytest.param({"n3": {Z: "z2", H: "n3"}}, None, id="all is gone"),
        pytest.param({"n3": {Z: "z1", H: "n3"}, "n4": {Z: "z2", H: "n1"}}, None, id="never together"),
    ],
)
async def test_what_no_node_has_any_more_is_not_required(nodes: dict[str, Json], expected: Json | None) -> None:
    world = World()
    record = {"nodeName": "n1", "nodeTopologyLabels": PLACE}
    world.state(record=record, requiredPersistentTopology={"keys": [Z, H]})
    for name, labels in nodes.items():
        world.node(name, **labels)
    assert (await world.admit(pod()))["spec"].get("nodeSelector") == expected


async def test_one_that_is_being_deleted_injects_nothing() -> None:
    world = World()
    world.state()
    document = world.cluster.named(PERSISTENT_POD_STATE, "n", "p")
    document["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert await world.admit(pod()) == pod()


async def test_kinds_that_administrators_name() -> None:
    world = World()
    world.state(api=GAMES, kind="GameSet")
    world.configure(WHITE_LIST)
    assert "nodeSelector" in (await world.admit(pod(api=GAMES, kind="GameSet")))["spec"]
    world.configure("{")
    assert (await world.pods.mutate(new_pod(pod(api=GAMES, kind="GameSet")))).code == 500
    assert await world.admit(pod()) == pod()  # pods of StatefulSets do not suffer from it


async def test_what_cannot_be_listed_counts_as_none() -> None:
    world = World()
    world.state()
    world.cluster.fail_lists = ApiError(500, "", "etcd")
    assert await world.admit(pod()) == pod()


async def test_other_kinds_are_asked_about_only_where_there_is_one() -> None:
    world = World()
    world.state(api=GAMES, kind="GameSet")
    world.configure(WHITE_LIST)
    await world.states.namespaces.listing("pages")
    await world.states.namespaces.complete("1")
    game = pod(api=GAMES, kind="GameSet")
    assert await world.admit(game) == game
    world.states.admitted({"metadata": {"namespace": "n"}})
    assert "nodeSelector" in (await world.admit(game))["spec"]
    world.clock.time += UNSEEN_SECONDS + 1
    assert await world.admit(game) == game
