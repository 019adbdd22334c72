"""The real kube-apiserver keeps the contract that the simulated one is held against."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count

import aiohttp
import pytest

from flotilla_cli.local import HOST
from flotilla_common.api.crds import manifests
from flotilla_common.api.resources import CONFIG_MAP, CRD, NAMESPACE, Resource
from flotilla_common.clock import SystemClock
from flotilla_common.kube.interface import Api, ApiError
from flotilla_dev.cluster.access import admin
from tests.simulation.contract.apiserver.contract import ApiServerContract
from tests.simulation.contract.apiserver.harness import Exchange, Harness, Play, encode, eventually
from tests.simulation.contract.apiserver.history import FORGETTABLE
from tests.support.cluster import Cluster, control_plane

ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_numbers = count()


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as one:
        yield one


@pytest.fixture(scope="module")
def cluster(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a control plane without nodes, so that no pods run.

    The apiserver serves one kind straight from etcd; for others its cache has older versions than etcd, for minutes.
    """
    flags = (f"--watch-cache-sizes={FORGETTABLE.plural}.{FORGETTABLE.group}#0",)
    plane = control_plane(tmp_path_factory.mktemp("plane"), nodes=0, apiserver_flags=flags)
    cluster = runner.run(plane.__aenter__())
    try:
        runner.run(_define(cluster))
        yield cluster
    finally:
        runner.run(plane.__aexit__(None, None, None))


@pytest.fixture
def play(runner: asyncio.Runner, cluster: Cluster) -> Play:
    return lambda exchange: runner.run(_in_a_namespace(cluster, exchange))


async def _define(cluster: Cluster) -> None:
    """Serve our kinds, in storage versions only, which need no conversion."""
    async with admin(cluster.kubeconfig, SystemClock()) as api:
        for manifest in manifests():
            manifest["spec"]["conversion"] = {"strategy": "None"}
            await api.create(CRD, "", encode(manifest))
            spec = manifest["spec"]
            version = next(one["name"] for one in spec["versions"] if one["storage"])
            kind = Resource(spec["group"], version, spec["names"]["plural"], spec["names"]["kind"])
            await eventually(lambda kind=kind: _serves(api, kind))


async def _serves(api: Api, resource: Resource) -> bool:
    with suppress(ApiError):
        await api.list(resource)
        return True
    return False


async def _in_a_namespace(cluster: Cluster, exchange: Exchange) -> None:
    name = f"scene-{next(_numbers)}"
    async with admin(cluster.kubeconfig, SystemClock()) as api:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await api.create(NAMESPACE, "", encode(body))
        await eventually(lambda: _furnished(api, name))
        await exchange(Harness(api, name, partial(_compact, cluster, api, name)))


async def _compact(cluster: Cluster, api: Api, namespace: str) -> None:
    """Compact etcd as the apiserver does every five minutes: it drops the versions before the present one."""
    revision = (await api.list(CONFIG_MAP, namespace, limit=1)).resource_version
    url = f"http://{HOST}:{cluster.plane.ports.etcd}/v3/kv/compaction"
    async with aiohttp.ClientSession() as http, http.post(url, json={"revision": revision, "physical": True}) as reply:
        reply.raise_for_status()


async def _furnished(api: Api, namespace: str) -> bool:
    """Report whether the namespace has its account, without which pods are refused, and the cluster's CA."""
    accounts, maps = await api.list(ACCOUNT, namespace), await api.list(CONFIG_MAP, namespace)
    return bool(accounts.items and maps.items)


class TestApiServer(ApiServerContract): ...
