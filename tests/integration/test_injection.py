"""The webhook in the path of pods against a real apiserver (sidecarset.md §6, container-extras.md §B2, ADR 15).

Covers the pods that it is called for, from when on, and its outage.
"""

import copy
import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import NAMESPACE, POD
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import ApiError
from flotilla_common.settings import Settings
from tests.support.cluster import control_plane, eventually
from tests.support.fleet import Fleet, fleet
from tests.support.podrules import pod_rules
from tests.support.random_pods import random_pod
from tests.testkit.documents import Json

CALLS = 'controller_runtime_webhook_requests_total{code="200",webhook="/mutate-pod"}'
RANDOM_PODS = 100
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


class Injecting:
    """A control plane with a webhook, and a client without detours."""

    def __init__(self, flotilla: Fleet, api: KubeClient) -> None:
        self.flotilla = flotilla
        self.api = api
        self._count = 0

    @property
    def calls(self) -> float:
        """Return how often the pod webhook was called."""
        return self.flotilla.members["webhook"].metric(CALLS)

    def name(self) -> str:
        """Return an unused name."""
        self._count += 1
        return f"n{self._count}"

    async def namespace(self, **labels: str) -> str:
        name = self.name()
        await self._create(NAMESPACE, "", {"metadata": {"name": name, "labels": labels}})
        return name

    async def sidecar_set(self, selector: Json, **spec: Any) -> str:
        """Create a SidecarSet that injects a container of its own name; return the name."""
        name = self.name()
        containers = [{"name": name, "image": "side:1"}]
        document = {"metadata": {"name": name}, "spec": {"selector": selector, "containers": containers, **spec}}
        await self._create(SIDECAR_SET, "", document)
        return name

    async def pod(self, namespace: str, labels: Json | None = None, **metadata: Any) -> list[str]:
        """Make a pod; the names of its containers."""
        document = {
            "metadata": {"name": self.name(), "labels": labels, **metadata},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }
        return names(await self._create(POD, namespace, document))

    async def change(self, name: str, spec: Json) -> None:
        body = msgspec.json.encode({"spec": spec})
        await self.api.patch(SIDECAR_SET, "", name, body, "application/merge-patch+json")

    async def _create(self, resource: Any, namespace: str, document: Json) -> Json:
        typed = {"apiVersion": resource.api_version, "kind": resource.kind} | document
        return msgspec.json.decode(await self.api.create(resource, namespace, msgspec.json.encode(typed)))


def names(pod: Json) -> list[str]:
    return [one["name"] for one in pod["spec"]["containers"]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Injecting]:
    services = ("watcher", "webhook", "sidecar")
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, services) as flotilla:
        settings = Settings(kubeconfig=str(cluster.kubeconfig))
        api = KubeClient(await load_config(settings, reader=read_here), user_agent="test")
        try:
            yield Injecting(flotilla, api)
        finally:
            await api.close()


async def test_whoever_has_made_one_finds_it_at_work(world: Injecting):
    """The webhook gets pods as soon as the answer has arrived, also after each change of the selector."""
    space = await world.namespace()
    for _ in range(3):
        label = world.name()
        pinned = {"matchLabels": {"kubernetes.io/metadata.name": space}}
        name = await world.sidecar_set({"matchLabels": {"app": label}}, namespaceSelector=pinned)
        assert await world.pod(space, {"app": label}) == [name, "main"]
        await world.change(name, {"selector": {"matchLabels": {"app": f"{label}-2"}}})
        assert await world.pod(space, {"app": f"{label}-2"}) == [name, "main"]
        assert await world.pod(space, {"app": label}) == ["main"]
        await world.change(name, {"injectionStrategy": {"paused": True}})
        assert await world.pod(space, {"app": f"{label}-2"}) == ["main"]
        await world.change(name, {"injectionStrategy": {"paused": False}})
        assert await world.pod(space, {"app": f"{label}-2"}) == [name, "main"]


SELECTORS = [
    ({"matchLabels": {"app": "x"}}, {"app": "x"}, {"app": "y"}),
    ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "z"]}]}, {"app": "z"}, {"tier": "x"}),
    (
        {
            "matchLabels": {"example.com/a": "1"},
            "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}],
        },
        {"example.com/a": "1"},
        {"example.com/a": "1", "app": "x"},
    ),
    ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {"app": ""}, {}),
    ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, None, {"app": "x"}),
]


@pytest.mark.parametrize(
    ("selector", "inside", "outside"), SELECTORS, ids=["equal", "In", "NotIn", "Exists", "DoesNotExist"]
)
async def test_the_apiserver_tells_pods_apart(world: Injecting, selector: Json, inside: Json | None, outside: Json):
    space, elsewhere = await world.namespace(), await world.namespace()
    pinned = {"matchLabels": {"kubernetes.io/metadata.name": space}}
    name = await world.sidecar_set(selector, namespaceSelector=pinned)
    assert await world.pod(space, inside, deletionTimestamp="2026-01-01T00:00:00Z") == [name, "main"]
    calls = world.calls
    assert await world.pod(space, outside) == ["main"]
    assert await world.pod(elsewhere, inside) == ["main"]
    assert world.calls == calls, "no call for a pod that no rule is about"


async def test_namespaces_by_their_labels(world: Injecting):
    team = world.name()
    red, blue = await world.namespace(team=team), await world.namespace(team="blue")
    by_team = await world.sidecar_set({"matchLabels": {"app": team}}, namespaceSelector={"matchLabels": {"team": team}})
    assert await world.pod(red, {"app": team}) == [by_team, "main"]
    calls = world.calls
    assert await world.pod(blue, {"app": team}) == ["main"]
    assert world.calls == calls
    everywhere = await world.sidecar_set({"matchLabels": {"app": team}})
    calls = world.calls
    assert await world.pod(red, {"app": team}) == [*sorted([by_team, everywhere]), "main"]
    assert world.calls == calls + 1, "a pod is sent once"
    body = msgspec.json.encode({"metadata": {"labels": {"team": team}}})
    await world.api.patch(NAMESPACE, "", blue, body, "application/merge-patch+json")
    assert len(await world.pod(blue, {"app": team})) == 3
    await world.api.delete(SIDECAR_SET, "", everywhere)


async def test_one_for_ten_thousand_namespaces(world: Injecting):
    """Its rule names no namespace, and is active all the same when it is stored."""
    space, elsewhere, label = await world.namespace(), await world.namespace(), world.name()
    many = [space, *(f"a-tenant-with-a-long-name-{number}" for number in range(10_000))]
    pinned = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": many}]}
    name = await world.sidecar_set({"matchLabels": {"app": label}}, namespaceSelector=pinned)
    assert await world.pod(space, {"app": label}) == [name, "main"]
    assert await world.pod(elsewhere, {"app": label}) == ["main"]
    (rule,) = (one for one in pod_rules(world.flotilla.cluster) if label in one.expression)
    assert rule.namespace == ""
    await world.api.delete(SIDECAR_SET, "", name)


async def test_priorities_are_the_pods_own_need(world: Injecting):
    space, calls = await world.namespace(), world.calls
    ordered = {"apps.kruise.io/container-launch-priority": "Ordered"}
    containers: list[Json] = [{"name": "a", "image": "nginx"}, {"name": "b", "image": "nginx"}]
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-"},
        "spec": {"containers": containers},
    }

    async def barriers(document: Json) -> list[str]:
        pod = msgspec.json.decode(await world.api.create(POD, space, msgspec.json.encode(document)))
        sources = [one["env"][-1].get("valueFrom", {}) for one in pod["spec"]["containers"] if "env" in one]
        references = [source["configMapKeyRef"] for source in sources if source]
        assert {one["name"] for one in references} <= {f"{pod['metadata']['name']}-barrier"}
        return [one["key"] for one in references]

    assert await barriers(document) == []
    assert world.calls == calls
    assert await barriers(document | {"metadata": {"generateName": "p-", "annotations": ordered}}) == ["p_0", "p_-1"]
    second = copy.deepcopy(document)
    second["spec"]["containers"][1]["env"] = [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "10"}]
    assert await barriers(second) == ["p_0", "p_10"]
    second["spec"]["containers"][1]["env"][0]["value"] = "x"
    with pytest.raises(ApiError, match="env KRUISE_CONTAINER_PRIORITY of container b is 'x': it must be an integer"):
        await barriers(second)


async def test_pods_of_all_shapes_are_stored(world: Injecting):
    """Each is made twice, as a dry run: with a SidecarSet for half of them, and where no rule is."""
    space, elsewhere, dice = await world.namespace(), await world.namespace(), random.Random(3)
    pinned = {"matchLabels": {"kubernetes.io/metadata.name": space}}
    name = await world.sidecar_set(
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        namespaceSelector=pinned,
        initContainers=[{"name": "setup", "image": "side:1"}],
        imagePullSecrets=[{"name": "c"}],
    )
    for _ in range(RANDOM_PODS):
        pod = random_pod(dice)
        body = msgspec.json.encode(pod)
        plain = msgspec.json.decode(await world.api.create(POD, elsewhere, body, dry_run=True))
        found = msgspec.json.decode(await world.api.create(POD, space, body, dry_run=True))
        matched = "app" in pod["metadata"].get("labels", {})
        assert names(found) == ([name] if matched else []) + names(plain)
        if not matched:
            assert unlike(found) == unlike(plain)


def unlike(pod: Json) -> Json:
    """Return the pod without what differs between any two pods."""
    text = msgspec.json.encode(pod["spec"] | {"annotations": pod["metadata"].get("annotations")}).decode()
    name = pod["metadata"]["name"]
    token = next((one["name"] for one in pod["spec"].get("volumes", []) if "projected" in one), "kube-api-access")
    return msgspec.json.decode(text.replace(token, "TOKEN").replace(f"{name}-barrier", "BARRIER"))


async def test_without_any_webhook_only_pods_of_rules_wait(world: Injecting):
    space = await world.namespace()
    label = world.name()
    name = await world.sidecar_set({"matchLabels": {"app": label}})
    world.flotilla.kill("webhook")
    assert await world.pod(space, {"app": "other"}) == ["main"]
    assert await world.pod(space) == ["main"]
    with pytest.raises(ApiError, match=r"failed calling webhook .mpod\.kb\.io"):
        await world.pod(space, {"app": label})
    await world.flotilla.start("webhook")
    assert await world.pod(space, {"app": label}) == [name, "main"]
    await world.api.delete(SIDECAR_SET, "", name)
    why = f"SidecarSet {name}"
    await eventually(lambda: why not in {rule.why for rule in pod_rules(world.flotilla.cluster)})
