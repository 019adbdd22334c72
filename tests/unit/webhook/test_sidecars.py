"""The SidecarSets, and their revisions, that a new pod gets (sidecarset.md §6.1 to §6.4, §11.1)."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from flotilla_common.api.admission.review import ALLOWED
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.podrules import PodRule, decoded
from flotilla_common.api.resources import NAMESPACE, REVISION
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import ApiError
from flotilla_common.kube.reflector import HeadMeta
from flotilla_webhook.pods.activation import ActiveRules
from flotilla_webhook.pods.admission import PodAdmission
from flotilla_webhook.pods.sidecars import UNSEEN_SECONDS, Sidecars
from tests.support.dice import Dice
from tests.support.fake_clock import FakeClock
from tests.testkit.admission import applied, listed, new_pod
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

SELECTOR = {"matchLabels": {"app": "x"}}
GOLDEN = {"matchLabels": {"kubernetes.io/metadata.name": "golden"}}
TEAM = {"matchLabels": {"team": "red"}}


def sidecar_set(name: str = "side", *, image: str = "new", annotations: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": name, "image": image, "podInjectPolicy": "BeforeAppContainer"}]
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": name, "generation": 1, "annotations": annotations or {}},
        "spec": {"selector": SELECTOR, "containers": containers, **spec},
        "status": {"latestRevision": f"{name}-new"},
    }


def pod(**labels: str) -> Json:
    return {"metadata": {"name": "p", "labels": labels or {"app": "x"}}, "spec": {"containers": [{"name": "main"}]}}


class World:
    """The pod webhook over a fake cluster whose SidecarSets its watch has listed."""

    def __init__(self, *sets: Json, share: float = 0.5, gates: str = "") -> None:
        self.cluster, self.clock = FakeApi(), FakeClock()
        for one in sets:
            self.cluster.put(SIDECAR_SET, one)
        dice = Dice(share)
        self.sidecars = Sidecars(self.cluster.api, self.clock, dice, Gates.parse(gates), "kruise-system")
        self.pods = PodAdmission([self.sidecars.step()], ActiveRules(self.clock))

    def revision(self, name: str, number: int, version: str = "", *, image: str = "old", of: str = "side") -> None:
        labels = {"kruise.io/sidecarset-name": of, "apps.kruise.io/sidecarset-custom-version": version}
        containers = [{"name": of, "image": image, "podInjectPolicy": "BeforeAppContainer"}]
        spec = {"$patch": "replace", "containers": containers, "initContainers": None, "volumes": None}
        spec |= {"imagePullSecrets": None, "patchPodMetadata": None}
        metadata = {"name": name, "namespace": "kruise-system", "labels": labels}
        self.cluster.put(REVISION, {"metadata": metadata, "revision": number, "data": {"spec": spec}})

    async def watch(self) -> None:
        """List everything as the watch does."""
        await listed(self.sidecars.cache, self.cluster, SIDECAR_SET)

    async def admit(self, document: Json | None = None, namespace: str = "golden") -> Json:
        document = document or pod()
        answer = await self.pods.mutate(new_pod(document, namespace))
        if not answer.allowed:
            raise AssertionError(answer.message)
        return applied(document, answer)


def names(document: Json) -> list[str]:
    return [one["name"] for one in document["spec"]["containers"]]


def image(document: Json) -> str:
    return document["spec"]["containers"][0]["image"]


@pytest.mark.parametrize("watched", [True, False], ids=["from the watch", "asked: the watch has not listed yet"])
async def test_injected(watched: bool) -> None:
    world = World(sidecar_set())
    if watched:
        await world.watch()
    found = await world.admit()
    assert names(found) == ["side", "main"]
    record = json.loads(found["metadata"]["annotations"]["kruise.io/sidecarset-hash"])["side"]
    assert record["controllerRevision"] == "side-new"
    assert "namespace" not in found["metadata"]


MATCH_ROWS = [
    pytest.param({}, {"app": "x"}, True, id="labels"),
    pytest.param({}, {"app": "y"}, False, id="other labels"),
    pytest.param({"selector": {}}, {"app": "x"}, False, id="an empty selector selects nothing"),
    pytest.param({"namespaceSelector": GOLDEN}, {"app": "x"}, True, id="the namespace's name"),
    pytest.param(
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "else"}}},
        {"app": "x"},
        False,
        id="another namespace's name",
    ),
    pytest.param({"namespaceSelector": TEAM}, {"app": "x"}, True, id="row 11: the namespace's labels"),
    pytest.param(
        {"namespaceSelector": {"matchLabels": {"team": "blue"}}}, {"app": "x"}, False, id="other labels of it"
    ),
    pytest.param(
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "?"}]}},
        {"app": "x"},
        False,
        id="a selector of namespaces that cannot be read selects none",
    ),
    pytest.param({"injectionStrategy": {"paused": True}}, {"app": "x"}, False, id="paused"),
]


@pytest.mark.parametrize(("spec", "labels", "expected"), MATCH_ROWS)
async def test_matching(spec: Json, labels: dict[str, str], expected: bool) -> None:
    world = World(sidecar_set(**spec))
    world.cluster.put(NAMESPACE, {"metadata": {"name": "golden", "labels": {"team": "red"}}})
    await world.watch()
    found = await world.admit(pod(**labels))
    assert names(found) == (["side", "main"] if expected else ["main"])
    if not expected:
        assert found == pod(**labels)


async def test_a_namespace_that_is_gone_has_no_labels() -> None:
    assert names(await World(sidecar_set(namespaceSelector=TEAM)).admit()) == ["main"]


async def test_a_selector_that_cannot_be_read_fails_the_request() -> None:
    bad = sidecar_set(selector={"matchExpressions": [{"key": "app", "operator": "?"}]})
    with pytest.raises(AssertionError, match="the selector of SidecarSet side cannot be read"):
        await World(bad).admit()


async def test_an_object_that_cannot_be_read_harms_no_other() -> None:
    world = World(sidecar_set("bad", selector="nonsense"), sidecar_set())
    assert names(await world.admit()) == ["side", "main"]


async def test_sets_in_the_order_of_their_names() -> None:
    assert names(await World(sidecar_set("b"), sidecar_set("a")).admit()) == ["a", "b", "main"]


@pytest.mark.parametrize(
    "claimed",
    [
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}},
    ],
    ids=["Succeeded", "Failed", "being deleted"],
)
async def test_a_new_pod_is_not_over_whatever_it_says(claimed: Json) -> None:
    """The apiserver drops these fields from a new pod, but only after admission."""
    document = pod() | {"status": claimed.get("status", {})}
    document["metadata"] |= claimed.get("metadata", {})
    assert names(await World(sidecar_set()).admit(document)) == ["side", "main"]


CANARY = {"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "base"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, ["canary", "main"], id="row 12"),
        pytest.param({"injectionStrategy": {"paused": True}}, ["base", "main"], id="row 13"),
        pytest.param({"selector": {"matchLabels": {"v": "2"}}}, ["base", "main"], id="a canary that does not match"),
        pytest.param(
            {"annotations": {"apps.kruise.io/sidecarset-base": "base"}}, ["base", "canary", "main"], id="half a canary"
        ),
    ],
)
async def test_canary(changes: Json, expected: list[str]) -> None:
    canary = sidecar_set("canary", **({"annotations": CANARY} | changes))
    assert names(await World(sidecar_set("base"), canary).admit()) == expected


# Revisions


def choosing(update: Json | None = None, **choice: Any) -> Json:
    return sidecar_set(injectionStrategy={"revision": choice}, updateStrategy=update or {})


PARTIAL = {"revisionName": "side-old", "policy": "Partial"}
CANARIES = {"matchLabels": {"v": "canary"}}
STABLE, NEW = {"app": "x", "v": "stable"}, {"app": "x", "v": "canary"}


@pytest.mark.parametrize(
    ("document", "labels", "share", "expected"),
    [
        pytest.param(choosing(customVersion="3", policy="Always"), STABLE, 0.5, "newer", id="row 14"),
        pytest.param(choosing(revisionName="side-old"), STABLE, 0.5, "old", id="by name"),
        pytest.param(choosing(revisionName="side-old", customVersion="3"), STABLE, 0.5, "old", id="the name wins"),
        pytest.param(
            choosing({"selector": CANARIES, "partition": 0}, **PARTIAL), STABLE, 0.5, "old", id="row 16, stable"
        ),
        pytest.param(choosing({"selector": CANARIES, "partition": 0}, **PARTIAL), NEW, 0.5, "new", id="row 16, canary"),
        pytest.param(choosing({"selector": CANARIES, "paused": True}, **PARTIAL), NEW, 0.5, "old", id="row 17"),
        pytest.param(choosing({"partition": "100%"}, **PARTIAL), STABLE, 0.999, "old", id="row 18"),
        pytest.param(choosing({"partition": "40%"}, **PARTIAL), STABLE, 0.3, "old", id="drawn"),
        pytest.param(choosing({"partition": "40%"}, **PARTIAL), STABLE, 0.5, "new", id="not drawn"),
        pytest.param(choosing({"partition": "0%"}, **PARTIAL), STABLE, 0.001, "new", id="none"),
        pytest.param(choosing({"partition": 5}, **PARTIAL), STABLE, 0.0, "new", id="a number is not drawn from"),
        pytest.param(choosing(), STABLE, 0.5, "new", id="neither name"),
    ],
)
async def test_revisions(document: Json, labels: dict[str, str], share: float, expected: str) -> None:
    world = World(document, share=share)
    world.revision("side-old", 1)
    world.revision("side-3a", 2, "3", image="older")
    world.revision("side-3b", 5, "3", image="newer")
    assert image(await world.admit(pod(**labels))) == expected


async def test_row_15_a_missing_revision_keeps_pods_from_being_made() -> None:
    with pytest.raises(AssertionError, match="SidecarSet side: cannot find ControllerRevision of custom version 3"):
        await World(choosing(customVersion="3")).admit()
    with pytest.raises(AssertionError, match="SidecarSet side: cannot find ControllerRevision gone"):
        await World(choosing(revisionName="gone")).admit()


async def test_a_partition_that_is_no_percentage() -> None:
    world = World(choosing({"partition": "x"}, **PARTIAL))
    world.revision("side-old", 1)
    with pytest.raises(AssertionError, match="partition 'x' is not a percentage"):
        await world.admit()


# Being up to date


async def test_one_that_was_just_admitted_is_looked_for() -> None:
    world = World()
    await world.watch()
    stored = world.cluster.put(SIDECAR_SET, sidecar_set())
    assert names(await world.admit()) == ["main"]
    world.sidecars.admitted(stored)
    assert names(await world.admit()) == ["side", "main"]
    stored = world.cluster.put(SIDECAR_SET, sidecar_set(image="newest"))
    stored["metadata"]["generation"] = 2
    assert image(await world.admit()) == "new"  # fresh enough: no change was announced
    world.sidecars.admitted(stored)
    assert image(await world.admit()) == "newest"


async def test_a_namesake_that_was_there_before_proves_nothing() -> None:
    world = World(sidecar_set() | {"metadata": {"name": "side", "uid": "old", "generation": 4}})
    await world.watch()
    del world.cluster.objects[SIDECAR_SET.plural, "", "side"]
    stored = world.cluster.put(SIDECAR_SET, sidecar_set(image="newest"))
    stored["metadata"]["uid"] = "new"
    world.sidecars.admitted(stored)
    assert image(await world.admit()) == "newest"
    gone = msgspec.Raw(msgspec.json.encode({"metadata": {"name": "side", "uid": "old", "resourceVersion": "1"}}))
    await world.sidecars.cache.event("DELETED", HeadMeta(name="side", uid="old", resource_version="1"), gone)
    assert image(await world.admit()) == "newest", "that the former one has gone is old news"


async def test_many_pods_at_once_look_for_the_same_ones() -> None:
    """The first answer is the last to come: meanwhile others have seen everything."""
    world = World()
    await world.watch()
    for name in ("a", "b", "c"):
        world.sidecars.admitted(world.cluster.put(SIDECAR_SET, sidecar_set(name)))
    read, others_are_done = world.cluster.get, asyncio.Event()
    late = iter([others_are_done])

    async def answer(*arguments: Any) -> bytes:
        for event in late:
            await event.wait()
        return await read(*arguments)

    world.cluster.get = answer  # type: ignore[method-assign]
    first = asyncio.create_task(world.admit())
    await asyncio.sleep(0)
    found = [await world.admit() for _ in range(2)]
    others_are_done.set()
    assert {tuple(names(one)) for one in (await first, *found)} == {("a", "b", "c", "main")}


async def test_one_that_was_never_stored_is_given_up() -> None:
    world = World()
    await world.watch()
    world.sidecars.admitted(sidecar_set())
    assert names(await world.admit()) == ["main"]
    world.clock.time += UNSEEN_SECONDS + 1
    world.cluster.put(SIDECAR_SET, sidecar_set())
    assert names(await world.admit()) == ["main"]


async def test_where_the_kind_is_not_installed_nothing_is_injected() -> None:
    world = World()
    world.cluster.fail_lists = ApiError(404, "NotFound", "the server could not find the requested resource")
    assert await world.admit() == pod()
    world.cluster.fail_lists = ApiError(500, "", "etcd")
    with pytest.raises(AssertionError, match="etcd"):
        await world.admit()


# What they make necessary


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {("", "")}, id="everywhere"),
        pytest.param({"namespaceSelector": GOLDEN}, {("golden", "")}, id="one namespace"),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}]
                }
            },
            {("a", ""), ("b", "")},
            id="two",
        ),
        pytest.param({"namespaceSelector": TEAM}, {("", '{"matchLabels":{"team":"red"}}')}, id="by labels"),
        pytest.param({"injectionStrategy": {"paused": True}}, set(), id="paused"),
        pytest.param({"selector": {}}, set(), id="nothing"),
    ],
)
async def test_rules(spec: Json, expected: set[tuple[str, str]]) -> None:
    world = World(sidecar_set(**spec))
    await world.watch()
    rules = await world.sidecars.rules()
    assert {(rule.namespace, rule.namespace_labels) for rule in rules} == expected
    assert await world.sidecars.rules_of(sidecar_set(**spec), "") == rules
    assert all(rule.why == "SidecarSet side" for rule in rules)


async def test_rules_of_the_older_version() -> None:
    document = sidecar_set() | {"apiVersion": "apps.kruise.io/v1alpha1"}
    document["spec"]["namespace"] = "golden"
    (rule,) = await World().sidecars.rules_of(document, "")
    assert rule == PodRule("SidecarSet side", rule.expression, "golden")


async def test_without_the_gate_nothing_happens() -> None:
    world = World(sidecar_set(), gates="PodWebhook=false")
    assert await world.sidecars.rules() == await world.sidecars.rules_of(sidecar_set(), "") == []
    assert await world.admit() == pod()
    _, stored = await world.pods.entries("")
    assert decoded(stored) == frozenset()
    assert await world.pods.mutate(new_pod(pod(), "")) == ALLOWED
