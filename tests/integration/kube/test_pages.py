"""Lists are read in pages from an apiserver that does not stream them, and watched from there."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.clock import SystemClock
from flotilla_common.kube.interface import UNSUPPORTED, Api, ApiError
from flotilla_common.kube.reflector import HeadMeta, Reflector, Way
from flotilla_dev.cluster.access import admin
from tests.support.cluster import Cluster, control_plane, eventually


class Names:
    """A sink that holds names, and records how they were listed."""

    def __init__(self) -> None:
        self.ways: list[Way] = []
        self.complete_at = ""
        self.names: set[str] = set()
        self.troubles: list[str] = []

    async def listing(self, way: Way) -> None:
        self.ways.append(way)
        self.names.clear()

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self.names.add(head.name)

    async def unlisted(self, head: HeadMeta, item: msgspec.Raw) -> None:
        self.names.discard(head.name)

    async def complete(self, version: str) -> None:
        self.complete_at = version

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        if kind == "DELETED":
            self.names.discard(head.name)
        else:
            self.names.add(head.name)

    async def progress(self, version: str) -> None:
        """Ignore bookmarks."""

    def state(self, trouble: str) -> None:
        self.troubles.append(trouble)


async def follow(cluster: Cluster) -> list[Way]:
    """Follow objects that are created before, and others that come later; return how they were listed."""
    sink, clock = Names(), SystemClock()
    async with admin(cluster.kubeconfig, clock) as api:
        await create(api, "before")
        task = asyncio.create_task(Reflector(api, CONFIG_MAP, sink, clock).run())
        try:
            await eventually(lambda: bool(sink.complete_at))
            assert "before" in sink.names
            await create(api, "after")
            await eventually(lambda: "after" in sink.names)
            await api.delete(CONFIG_MAP, "default", "before")
            await eventually(lambda: "before" not in sink.names)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert not any(sink.troubles)
    return sink.ways


async def create(api: Api, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    await api.create(CONFIG_MAP, "default", msgspec.json.encode(body))


async def test_an_apiserver_without_the_feature_gate_is_read_in_pages(tmp_path: Path) -> None:
    async with control_plane(tmp_path, nodes=0, apiserver_flags=("--feature-gates=WatchList=false",)) as cluster:
        async with admin(cluster.kubeconfig, SystemClock()) as api:
            with pytest.raises(ApiError) as refused:
                await anext(api.stream(CONFIG_MAP))
        assert refused.value.code in UNSUPPORTED
        assert await follow(cluster) == ["streamed", "pages"]


@pytest.mark.asyncio(loop_scope="package")
async def test_another_streams_its_lists(cluster: Cluster) -> None:
    assert await follow(cluster) == ["streamed"]
