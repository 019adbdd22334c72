"""Access to the local apiserver: a token per component, a signing key for service accounts, kubeconfigs, an admin.

The apiserver makes its own serving certificate in the state folder; kubeconfigs trust exactly that one.
"""

import base64
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from flotilla_cli.local import write_private
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.settings import Settings

USERS: Mapping[str, tuple[str, str]] = {  # user of each component, and its groups
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""),
    "coredns": ("system:coredns", ""),
    "kwok": ("kwok", "system:masters"),
}

TIMEOUT_SECONDS = 30.0  # seconds per request: everything is on this machine
USER_AGENT = "flotilla-up"


def write_tokens(path: Path, users: Mapping[str, tuple[str, str]] = USERS) -> dict[str, str]:
    """Write the token file if it does not exist. Return the token of each component."""
    if not path.exists():
        rows = [
            f"{secrets.token_hex(24)},{user},{name}{f',{group}' if group else ''}"
            for name, (user, group) in users.items()
        ]
        write_private(path, "\n".join(rows) + "\n")
    parts = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    return {fields[2]: fields[0] for fields in parts}


def write_signing_key(path: Path) -> None:
    """Write the key that signs service-account tokens, if it does not exist."""
    if path.exists():
        return
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    write_private(path, pem)


def write_kubeconfig(path: Path, server: str, authority: Path, user: dict[str, str], *, enclosed: bool = False) -> None:
    """Write a kubeconfig with one context, named flotilla.

    It names the file of the authority. If `enclosed`, it contains the authority and can be
    moved elsewhere.
    """
    trusted = {"certificate-authority": str(authority)}
    if enclosed:
        trusted = {"certificate-authority-data": base64.b64encode(authority.read_bytes()).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "flotilla",
        "clusters": [{"name": "flotilla", "cluster": {"server": server, **trusted}}],
        "users": [{"name": "flotilla", "user": user}],
        "contexts": [{"name": "flotilla", "context": {"cluster": "flotilla", "user": "flotilla"}}],
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False))


@asynccontextmanager
async def admin(path: Path, clock: Clock) -> AsyncGenerator[Api]:
    """Open a client with the credentials of this kubeconfig for the time of the block."""
    config = await load_config(Settings(kubeconfig=str(path)), reader=read_here, clock=clock)
    client = KubeClient(config, user_agent=USER_AGENT, timeout=TIMEOUT_SECONDS)
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
