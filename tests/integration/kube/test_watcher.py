"""The watcher and the mirror on a real apiserver and a real nats-server: the tables equal the existing objects."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.health import Health
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from flotilla_common.tracing.context import change
from flotilla_watcher import app
from flotilla_watcher.resource_watch import ResourceWatch
from tests.support.broker import Broker, broker
from tests.support.cluster import Cluster, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPEC = subjects.kube_stream(CONFIG_MAP)


class Target(msgspec.Struct, frozen=True):
    kubeconfig: str
    context: str = ""


class ConfigMap(Model):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


@pytest_asyncio.fixture(loop_scope="module")
async def nats(tmp_path: Path) -> AsyncIterator[Broker]:
    async with broker(tmp_path) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def api(cluster: Cluster) -> AsyncIterator[KubeClient]:
    client = KubeClient(
        await load_config(Target(str(cluster.kubeconfig)), reader=read_here), user_agent="kruise-manager/test"
    )
    yield client
    await client.close()


_names = iter(range(1000))


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(api: KubeClient) -> str:
    name = f"watched-{next(_names)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await api.raw("POST", "/api/v1/namespaces", msgspec.json.encode(body), {"Content-Type": "application/json"})
    async with asyncio.timeout(30):
        while not (await api.list(CONFIG_MAP, name)).items:  # the controller manager's: no object comes by itself
            await SystemClock().sleep(0.05)
    return name


class Publishing:
    """One watcher with a fence that the test may drop."""

    def __init__(self, api: KubeClient, nats: Broker, resource: Resource = CONFIG_MAP, max_payload: int = 8 << 20):
        self.bus = nats.bus("watcher")
        self.fence = True
        self.reports: list[str] = []
        self.watch = ResourceWatch(
            api=api,
            bus=self.bus,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            resource=resource,
            max_payload=max_payload,
            fence=lambda: self.fence,
            report=self.reports.append,
            copies={},
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Publishing"]:
        task = asyncio.create_task(self.watch.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.bus.close()


@asynccontextmanager
async def mirrored(
    api: KubeClient, nats: Broker, fallback_after: float = 30
) -> AsyncIterator[tuple[Mirror, Table[ConfigMap]]]:
    bus = nats.bus("mirror")
    mirror = Mirror(api=api, bus=bus, clock=SystemClock(), fallback_after=fallback_after)
    table = mirror.add(CONFIG_MAP, ConfigMap)
    task = asyncio.create_task(mirror.run())
    try:
        yield mirror, table
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await bus.close()


def config_map(name: str, namespace: str, **data: str) -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}
    )


async def create(api: KubeClient, name: str, namespace: str, **data: str) -> ConfigMap:
    return msgspec.json.decode(
        await api.create(CONFIG_MAP, namespace, config_map(name, namespace, **data)), type=ConfigMap
    )


async def patch(api: KubeClient, name: str, namespace: str, **data: str) -> None:
    await api.patch(CONFIG_MAP, namespace, name, msgspec.json.encode({"data": data}), "application/merge-patch+json")


def held(table: Table[ConfigMap], namespace: str) -> dict[str, dict[str, str]]:
    found = {obj.metadata.name: obj.data for obj in table if obj.metadata.namespace == namespace}
    found.pop("kube-root-ca.crt", None)  # the controller manager puts it into every namespace
    return found


async def test_errors_of_the_apiserver(api: KubeClient, namespace: str, cluster: Cluster) -> None:
    await create(api, "a", namespace)
    with pytest.raises(ApiError) as refused:
        await create(api, "a", namespace)
    assert (refused.value.code, refused.value.reason) == (409, "AlreadyExists")
    with pytest.raises(ApiError) as conflict:
        await api.delete(CONFIG_MAP, namespace, "a", uid="00000000-0000-0000-0000-000000000000")
    assert (conflict.value.code, conflict.value.reason) == (409, "Conflict")
    nowhere = KubeClient(await load_config(Target(str(cluster.kubeconfig)), reader=read_here), user_agent="x")
    nowhere._config = msgspec.structs.replace(nowhere._config, server="https://127.0.0.1:1")
    with pytest.raises(Unreachable) as unreachable:
        await nowhere.get(CONFIG_MAP, namespace, "a")
    assert unreachable.value.sent is False
    await nowhere.close()


async def test_objects_travel_from_the_apiserver_to_the_table(api: KubeClient, nats: Broker, namespace: str) -> None:
    await create(api, "before", namespace, a="1")
    async with Publishing(api, nats).running(), mirrored(api, nats) as (mirror, table):
        await mirror.synced(10)
        assert held(table, namespace) == {"before": {"a": "1"}}
        made = await create(api, "with.dots", namespace, b="2")
        await patch(api, "before", namespace, a="3")
        await eventually(lambda: held(table, namespace) == {"before": {"a": "3"}, "with.dots": {"b": "2"}})
        await api.delete(CONFIG_MAP, namespace, "with.dots", uid=made.metadata.uid)
        await eventually(lambda: held(table, namespace) == {"before": {"a": "3"}})
        assert mirror._feeds[CONFIG_MAP].synced
        assert not mirror._feeds[CONFIG_MAP].direct


async def test_messages_are_as_the_design_says(api: KubeClient, nats: Broker, namespace: str) -> None:
    made = await create(api, "one", namespace, a="1")
    seen: dict[str, Message] = {}
    async with Publishing(api, nats).running() as publishing:
        await publishing.bus.follow(
            SPEC.name, ">", lambda message: seen.__setitem__(message.subject, message), lambda: None
        )
        subject = subjects.kube(CONFIG_MAP, namespace, "one")
        marker_subject = subjects.kube_marker(CONFIG_MAP)
        await eventually(lambda: subject in seen and b"synced" in seen[marker_subject].data)
        body: dict[str, Any] = json.loads(seen[subject].data)
        marker: dict[str, Any] = json.loads(seen[marker_subject].data)
        headers = seen[subject].headers
        assert (body["kind"], body["apiVersion"], body["data"]) == ("ConfigMap", "v1", {"a": "1"})
        assert "managedFields" not in body["metadata"]
        assert (headers["op"], headers["uid"]) == ("ADDED", made.metadata.uid)
        assert headers["rv"] == made.metadata.resource_version
        assert headers["traceparent"] == change(made.metadata.uid, 0).version(headers["rv"]).traceparent
        assert headers["epoch"] == marker["epoch"]
        assert int(marker["rv"]) >= int(headers["rv"])
        assert marker["count"] > 0
        await api.delete(CONFIG_MAP, namespace, "one")
        await eventually(lambda: seen[subject].headers["op"] == "DELETED")
        assert int(seen[subject].headers["rv"]) > int(headers["rv"])
        assert "Nats-TTL" in seen[subject].headers


async def test_a_delete_that_nobody_watched_gets_a_tombstone(api: KubeClient, nats: Broker, namespace: str) -> None:
    for name in ("keep", "vanish"):
        await create(api, name, namespace)
    async with mirrored(api, nats) as (mirror, table):
        async with Publishing(api, nats).running():
            await mirror.synced(10)
            assert held(table, namespace).keys() == {"keep", "vanish"}
        await api.delete(CONFIG_MAP, namespace, "vanish")
        async with Publishing(api, nats).running() as publishing:
            await eventually(lambda: held(table, namespace).keys() == {"keep"})
            tombstone = await publishing.bus.get_last(SPEC.name, subjects.kube(CONFIG_MAP, namespace, "vanish"))
            assert tombstone is not None
            assert tombstone.headers["op"] == "DELETED"
    async with Publishing(api, nats).running(), mirrored(api, nats) as (mirror, late):
        await mirror.synced(10)
        assert held(late, namespace).keys() == {"keep"}


async def test_a_wiped_bus_is_filled_again(api: KubeClient, nats: Broker, namespace: str) -> None:
    for number in range(60):
        await create(api, f"c{number}", namespace)
    async with Publishing(api, nats).running(), mirrored(api, nats) as (mirror, table):
        await mirror.synced(10)
        await nats.wipe()
        await api.delete(CONFIG_MAP, namespace, "c0")
        await create(api, "new", namespace)
        await eventually(lambda: mirror._feeds[CONFIG_MAP].synced and "new" in held(table, namespace))
        assert len(held(table, namespace)) == 60
        assert "c0" not in held(table, namespace)
    async with mirrored(api, nats) as (_, late):
        await eventually(lambda: len(held(late, namespace)) == 60)


async def test_a_restarted_bus_loses_nothing(api: KubeClient, nats: Broker, namespace: str) -> None:
    async with Publishing(api, nats).running(), mirrored(api, nats) as (mirror, table):
        await mirror.synced(10)
        await nats.kill()
        for number in range(30):
            await create(api, f"r{number}", namespace)
        await nats.start()
        await eventually(lambda: len(held(table, namespace)) == 30)


async def test_a_second_publisher_makes_the_first_one_lose(api: KubeClient, nats: Broker, namespace: str) -> None:
    async with Publishing(api, nats).running() as first, mirrored(api, nats) as (mirror, table):
        await mirror.synced(10)
        async with Publishing(api, nats).running() as second:
            await eventually(lambda: "" in second.reports)
            first.fence = False
            await eventually(lambda: any("starts over" in report for report in first.reports))
            await create(api, "after", namespace)
            await eventually(lambda: "after" in held(table, namespace))
            marker = await second.bus.get_last(SPEC.name, subjects.kube_marker(CONFIG_MAP))
            epoch = marker.headers["epoch"] if marker else ""
            await asyncio.sleep(2)
            again = await second.bus.get_last(SPEC.name, subjects.kube_marker(CONFIG_MAP))
            assert again is not None
            assert again.headers["epoch"] == epoch


async def test_objects_too_large_for_the_bus_are_fetched(api: KubeClient, nats: Broker, namespace: str) -> None:
    async with Publishing(api, nats, max_payload=2000).running() as publishing, mirrored(api, nats) as (mirror, table):
        await mirror.synced(10)
        await create(api, "large", namespace, a="x" * 5000)
        await eventually(lambda: "large" in held(table, namespace))
        assert len(held(table, namespace)["large"]["a"]) == 5000
        message = await publishing.bus.get_last(SPEC.name, subjects.kube(CONFIG_MAP, namespace, "large"))
        assert message is not None
        assert message.headers["oversize"] == "true"
        assert len(message.data) < 500


async def test_a_missing_kind_is_waited_for(api: KubeClient, nats: Broker, cluster: Cluster) -> None:
    async with Publishing(api, nats, resource=CLONE_SET).running() as publishing:
        await eventually(lambda: any("waiting for CRD clonesets.apps.kruise.io" in one for one in publishing.reports))
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "clonesets.apps.kruise.io", "annotations": {"api-approved.kubernetes.io": "test"}},
            "spec": {
                "group": "apps.kruise.io",
                "scope": "Namespaced",
                "names": {"plural": "clonesets", "singular": "cloneset", "kind": "CloneSet"},
                "versions": [
                    {
                        "name": "v1beta1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
        cluster.apply(crd)
        await eventually(lambda: publishing.reports[-1] == "")
        cluster.kubectl("delete", "crd", "clonesets.apps.kruise.io")


async def test_without_a_bus_the_mirror_watches_by_itself(api: KubeClient, nats: Broker, namespace: str) -> None:
    await create(api, "before", namespace)
    async with Publishing(api, nats).running(), mirrored(api, nats, fallback_after=2) as (mirror, table):
        await mirror.synced(10)
        await nats.kill()
        await create(api, "during", namespace)
        await eventually(lambda: "during" in held(table, namespace))
        assert mirror._feeds[CONFIG_MAP].direct
        await api.delete(CONFIG_MAP, namespace, "before")
        await eventually(lambda: held(table, namespace).keys() == {"during"})
        await nats.start()
        await eventually(lambda: not mirror._feeds[CONFIG_MAP].direct)
        await create(api, "after", namespace)
        await eventually(lambda: held(table, namespace).keys() == {"during", "after"})


async def test_without_a_watcher_the_mirror_watches_by_itself(api: KubeClient, nats: Broker, namespace: str) -> None:
    await create(api, "one", namespace)
    async with mirrored(api, nats, fallback_after=1) as (mirror, table):
        await mirror.synced(10)
        assert mirror._feeds[CONFIG_MAP].direct
        assert held(table, namespace).keys() == {"one"}
        async with Publishing(api, nats).running():
            await eventually(lambda: not mirror._feeds[CONFIG_MAP].direct)


async def test_take_over_and_reads_go_through_the_same_door(api: KubeClient, nats: Broker, namespace: str) -> None:
    async with mirrored(api, nats) as (mirror, table):
        body = await api.create(CONFIG_MAP, namespace, config_map("mine", namespace, a="1"))
        mirror.written(CONFIG_MAP, body)
        assert held(table, namespace) == {"mine": {"a": "1"}}
        await create(api, "theirs", namespace)
        await mirror.resync([CONFIG_MAP])
        assert held(table, namespace).keys() == {"mine", "theirs"}
        await patch(api, "mine", namespace, a="2")
        read = await mirror.read(CONFIG_MAP, namespace, "mine")
        assert isinstance(read, ConfigMap)
        assert held(table, namespace)["mine"] == {"a": "2"}
        await api.delete(CONFIG_MAP, namespace, "mine")
        assert await mirror.read(CONFIG_MAP, namespace, "mine") is None
        await api.delete(CONFIG_MAP, namespace, "theirs")
        await mirror.read_owned(CONFIG_MAP, namespace)
        assert held(table, namespace) == {}
        assert len(table) > 0


@asynccontextmanager
async def replica(name: str, api: KubeClient, nats: Broker) -> AsyncIterator[Context]:
    settings = Settings(lease_duration=3, lease_retry_period=0.5)
    bus, clock = nats.bus(name), SystemClock()
    context = Context(
        service="watcher",
        settings=settings,
        gates=settings.gates(),
        api=api,
        bus=bus,
        clock=clock,
        entropy=SystemEntropy(),
        health=Health(),
        replica=name,
    )
    task = asyncio.create_task(app.run(context, app.published()))
    try:
        yield context
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await bus.close()


def published(context: Context) -> list[str]:
    figure = context.vitals.get("resources", list)()
    return [str(one) for one in figure] if isinstance(figure, list) else []


async def test_replicas_share_the_resources(api: KubeClient, nats: Broker, cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", "kruise-system")
    everything = sorted(resource.id for resource in app.published())
    others = sorted(resource.id for resource in app.published() if resource != POD)
    async with replica("a", api, nats) as first:
        await eventually(lambda: sorted(published(first)) == everything)
        missing = sorted(resource.id for resource in app.published() if resource.custom)
        await eventually(lambda: sorted(first.health.waiting) == missing)
        async with replica("b", api, nats) as second:
            await eventually(lambda: (published(first), sorted(published(second))) == ([POD.id], others))
        await eventually(lambda: sorted(published(first)) == everything)
