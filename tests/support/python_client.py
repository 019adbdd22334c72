"""kubernetes_asyncio's dynamic client, as Python users drive our kinds.

async with python_client(cluster, tmp_path) as client:
    clonesets = await client.resources.get(api_version="apps.kruise.io/v1beta1", kind="CloneSet")
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from kubernetes_asyncio.config import new_client_from_config
from kubernetes_asyncio.dynamic import DynamicClient
from kubernetes_asyncio.watch import Watch

from tests.support.cluster import Cluster
from tests.testkit.documents import Json

PATIENCE = 60  # seconds


@asynccontextmanager
async def python_client(cluster: Cluster, folder: Path) -> AsyncGenerator[DynamicClient]:
    """Create a client that caches discovery in this folder, lest it use an earlier cluster's."""
    made = await new_client_from_config(config_file=str(cluster.kubeconfig))
    async with made, DynamicClient(made, cache_file=str(folder / "discovery.json")) as client:
        yield client


async def watched(resource: Any, namespace: str, name: str, wanted: Callable[[Json], bool]) -> Json:
    """Return the object once a watch shows its status as wanted."""
    async with Watch() as watcher:  # passed in, because nothing closes the default one
        events = resource.watch(namespace=namespace, name=name, timeout=PATIENCE, watcher=watcher)
        async with aclosing(events):
            async for event in events:
                found = event["object"].to_dict()
                if wanted(found.get("status", {})):
                    return found
    raise AssertionError(f"{name} was not as wanted within {PATIENCE} s")
