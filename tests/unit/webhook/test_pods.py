"""The pod webhook: its steps, the entry that they make, and how it comes into use (webhooks.md §7,
persistentpodstate.md §6)."""

import re
from typing import Any

import msgspec
import pytest

from flotilla_common.api.admission.review import ALLOWED, Answer, Named, Request, error
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.api.webhooks import LACKS_READINESS_GATE, PodRule, namespaces_of, pod_entry, probe_name
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import ApiError
from flotilla_common.kube.reflector import HeadMeta
from flotilla_webhook.arming import Arming
from flotilla_webhook.need import LINGER_SECONDS, Need
from flotilla_webhook.persistent import persistent_step
from flotilla_webhook.podready import readiness_step
from flotilla_webhook.pods import SEEN, PodAdmission
from flotilla_webhook.whitelist import WhiteList
from tests.support.fake_clock import FakeClock
from tests.unit.webhook.fakes import FakeApi, Json

O, H, Z = "kubernetes.io/os", "kubernetes.io/hostname", "zone"  # noqa: E741 - as the worked examples say it
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APPS, OURS, GAMES = "apps/v1", "apps.kruise.io/v1alpha1", "games.io/v1"
RECORD = {"nodeName": "n2", "nodeTopologyLabels": {O: "linux", H: "n2"}}
WHITE_LIST = '{"workloads":[{"Group":"games.io","Version":"v1","Kind":"GameSet"}]}'


class World:
    """The pod webhook over a fake cluster."""

    def __init__(self, gates: str = "") -> None:
        self.cluster, self.clock = FakeApi(), FakeClock()
        self.need = Need(self.clock)
        white_list = WhiteList(self.cluster.api, "kruise-system")
        steps = [readiness_step(Gates.parse(gates)), persistent_step(self.cluster.api, white_list, self.need)]
        self.pods = PodAdmission(steps)

    def state(self, *, api: str = APPS, kind: str = "StatefulSet", record: Json | None = None, **spec: Any) -> None:
        """There is PersistentPodState `p`, with this record of pod `s-0`."""
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

    def configure(self, white_list: str) -> None:
        metadata = {"name": "kruise-configuration", "namespace": "kruise-system"}
        data = {"PPS_Watch_Custom_Workload_WhiteList": white_list}
        self.cluster.put(CONFIG_MAP, {"metadata": metadata, "data": data})

    async def see(self, namespace: str, uid: str = "1", kind: str = "ADDED") -> None:
        """The watch tells of a PersistentPodState."""
        metadata = {"metadata": {"namespace": namespace, "uid": uid}}
        head = HeadMeta(namespace=namespace, uid=uid)
        await self.need.event(kind, head, msgspec.Raw(msgspec.json.encode(metadata)))

    async def admit(self, document: Json) -> Json:
        """The pod as it is stored."""
        answer = await self.pods.mutate(create(document))
        assert answer.allowed, answer.message
        return applied(document, answer)


def create(document: Json | None) -> Request:
    return Request(uid="u", operation="CREATE", namespace="n", object=document, resource=Named(resource="pods"))


def pod(name: str = "s-0", api: str = APPS, kind: str = "StatefulSet", **spec: Any) -> Json:
    owner = {"apiVersion": api, "kind": kind, "name": "s", "controller": True}
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"containers": [], **spec}}


def applied(document: Json, answer: Answer) -> Json:
    """The document with the patch of the answer: only additions and replacements of members are made here."""
    result: Json = msgspec.json.decode(msgspec.json.encode(document))
    for operation in answer.patch:
        *path, last = [step.replace("~1", "/").replace("~0", "~") for step in operation.path.split("/")[1:]]
        place: Any = result
        for step in path:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if isinstance(place, list):
            place.insert(int(last), operation.value)
        else:
            place[last] = operation.value
    return result


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
    assert (await world.pods.mutate(create(None))).code == 400
    assert await world.pods.mutate(Request(uid="u", operation="UPDATE", object={}, old_object={})) == ALLOWED
    assert await World().pods.mutate(create(pod())) == ALLOWED


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


async def test_one_that_is_being_deleted_injects_nothing() -> None:
    world = World()
    world.state()
    (document,) = world.cluster.objects.values()
    document["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert await world.admit(pod()) == pod()


async def test_kinds_that_administrators_name() -> None:
    world = World()
    world.state(api=GAMES, kind="GameSet")
    world.configure(WHITE_LIST)
    assert "nodeSelector" in (await world.admit(pod(api=GAMES, kind="GameSet")))["spec"]
    world.configure("{")
    assert (await world.pods.mutate(create(pod(api=GAMES, kind="GameSet")))).code == 500
    assert await world.admit(pod()) == pod()  # pods of StatefulSets do not suffer from it


async def test_what_cannot_be_listed_counts_as_none() -> None:
    world = World()
    world.state()
    world.cluster.fail_lists = ApiError(500, "", "etcd")
    assert await world.admit(pod()) == pod()


# The entry


async def test_the_entry_follows_the_need() -> None:
    world = World()
    assert await world.pods.entry({}) is None
    await world.see("b", "1")
    await world.see("a", "2")
    entry = await world.pods.entry({})
    assert entry is not None
    assert namespaces_of(entry) == {"a", "b"}
    ((condition,), (pods, probes)) = entry["matchConditions"], entry["rules"]
    assert (pods["resources"], probes["resources"]) == (["pods"], ["podtemplates"])
    assert 'r.kind == "StatefulSet" && r.apiVersion.startsWith("apps/")' in condition["expression"]
    assert "games.io" not in condition["expression"]
    world.configure(WHITE_LIST)
    wider = await world.pods.entry(entry)
    assert wider is not None
    assert '(r.kind == "GameSet" && r.apiVersion.startsWith("games.io/"))' in wider["matchConditions"][0]["expression"]
    world.configure("{")
    assert await world.pods.entry(wider) == entry


async def test_what_is_armed_lingers() -> None:
    world = World()
    await world.see("a")
    entry = await world.pods.entry({})
    assert entry is not None
    await world.need.complete("1")  # a LIST without any
    assert await world.pods.entry(entry) == entry
    world.clock.time += LINGER_SECONDS + 1
    assert await world.pods.entry(entry) is None


async def test_what_is_armed_stays_until_it_is_known_what_there_is() -> None:
    world = World()
    entry = pod_entry([PodRule("of-persistent-workload", "true", frozenset({"a"}), probed=True)])
    for _ in range(3):
        made = await world.pods.entry(entry)
        assert made is not None
        assert namespaces_of(made) == {"a"}
        world.clock.time += LINGER_SECONDS + 1


WITHIN = PodRule("within", "w", frozenset({"a"}), probed=True)
OTHERS = PodRule("others", "o", frozenset({"b"}))


@pytest.mark.parametrize(
    ("rules", "namespaces", "condition"),
    [
        pytest.param([LACKS_READINESS_GATE], set(), LACKS_READINESS_GATE.expression, id="everywhere"),
        pytest.param([OTHERS], {"b"}, "o", id="one namespace"),
        pytest.param([OTHERS, WITHIN], {"a", "b"}, "PROBE : ((o) || (w))", id="both"),
        pytest.param(
            [LACKS_READINESS_GATE, WITHIN],
            set(),
            f"PROBE : (({LACKS_READINESS_GATE.expression}) || (w))",
            id="one of them everywhere",
        ),
    ],
)
def test_the_union_of_rules(rules: list[PodRule], namespaces: set[str], condition: str) -> None:
    entry = pod_entry(rules)
    assert namespaces_of(entry) == namespaces
    ((made),) = entry["matchConditions"]
    probe = (
        "request.resource.resource == 'podtemplates' ? has(object.metadata.name) && "
        f"object.metadata.name == '{probe_name(rules)}'"
    )
    assert made["expression"].replace(probe, "PROBE") == condition
    assert re.fullmatch("[a-z-]{1,63}", made["name"])
    keys = [one["key"] for one in entry["namespaceSelector"]["matchExpressions"]]
    assert keys[:2] == ["control-plane", "kubernetes.io/metadata.name"]


# Arming


class Apiserver(FakeApi):
    """Uses what was registered after some looks, and then sends probes to the pod webhook."""

    def __init__(self, pods: PodAdmission, looks: int) -> None:
        super().__init__()
        self.pods, self.looks, self.registered = pods, looks, 0
        self.dry_runs = 0

    async def register(self) -> None:
        self.registered += 1
        if self.registered == 1:
            raise ApiError(409, "Conflict", "another replica was faster")

    async def create(self, resource: Any, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        assert dry_run
        self.dry_runs += 1
        document = msgspec.json.decode(body)
        if self.dry_runs <= self.looks:
            return body
        request = Request(
            uid="u", operation="CREATE", object=document, dry_run=True, resource=Named(resource=resource.plural)
        )
        return msgspec.json.encode(applied(document, await self.pods.mutate(request)))


def arming(world: World, looks: int) -> tuple[Arming, Apiserver]:
    server = Apiserver(world.pods, looks)
    made = Arming(api=server.api, clock=world.clock, need=world.need, pods=world.pods, register=server.register)
    return made, server


async def allow(_: Request) -> Answer:
    return ALLOWED


def wanted(**changes: Any) -> Request:
    return msgspec.structs.replace(create({"metadata": {"name": "p"}}), **changes)


async def test_creation_is_answered_once_the_rule_is_in_use() -> None:
    world = World()
    armed, server = arming(world, looks=3)
    assert await armed.before(allow)(wanted()) == ALLOWED
    assert (server.dry_runs, server.registered) == (4, 3)
    entry = await world.pods.entry({})
    assert entry is not None
    assert namespaces_of(entry) == {"n"}


async def test_what_takes_too_long_is_told() -> None:
    world = World()
    armed, _ = arming(world, looks=10**6)
    answer = await armed.before(allow)(wanted())
    assert answer.allowed
    assert "namespace n" in answer.warnings[0]


@pytest.mark.parametrize("changes", [{"dry_run": True}, {"operation": "UPDATE"}])
async def test_nothing_is_armed(changes: Json) -> None:
    world = World()
    armed, server = arming(world, looks=0)
    assert await armed.before(allow)(wanted(**changes)) == ALLOWED
    assert server.dry_runs == server.registered == 0


async def test_a_refused_one_arms_nothing() -> None:
    async def refuse(_: Request) -> Answer:
        return error(400, "no")

    armed, server = arming(World(), looks=0)
    assert (await armed.before(refuse)(wanted())).code == 400
    assert server.dry_runs == 0


async def test_only_a_dry_run_is_a_probe() -> None:
    rules = [WITHIN]
    template = {"metadata": {"name": probe_name(rules)}, "template": {}}
    request = Request(uid="u", operation="CREATE", object=template, resource=Named(resource="podtemplates"))
    assert (await World().pods.mutate(request)).code == 400
    marked = await World().pods.mutate(msgspec.structs.replace(request, dry_run=True))
    assert applied(template, marked)["metadata"]["annotations"] == {SEEN: "true"}
