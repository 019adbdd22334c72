"""Accesses the local apiserver as its admin."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.settings import Settings

TIMEOUT = 30.0  # seconds per request: everything is on this machine
USER_AGENT = "flotilla-up"


@asynccontextmanager
async def admin(path: Path, clock: Clock) -> AsyncGenerator[Api]:
    """Open a client with the credentials of this kubeconfig for the time of the block."""
    config = await load_config(Settings(kubeconfig=str(path)), reader=read_here, clock=clock)
    client = KubeClient(config, user_agent=USER_AGENT, timeout=TIMEOUT)
    try:
        yield client
    finally:
        await client.close()


async def not_ready(path: Path, clock: Clock) -> str:
    """Return why the apiserver behind this kubeconfig does not serve; empty if it does."""
    async with admin(path, clock) as api:
        try:
            await api.raw("GET", "/readyz")
        except (ApiError, Unreachable) as error:
            return str(error)
    return ""


async def ensure(api: Api, resource: Resource, body: Json, namespace: str = "") -> bool:
    """Create an object unless one of its name exists. Report whether it was created."""
    try:
        await api.create(resource, namespace, msgspec.json.encode(body))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True
