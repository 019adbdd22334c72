"""Finds the cluster and the bus that a command means, and connects to them.

The cluster: `--kubeconfig`, KUBECONFIG, the local set of `flotilla up`, then the places where kubectl looks. The bus:
`--nats`, FLOTILLA_NATS, the local set that the kubeconfig belongs to, the `flotilla run` for the same kubeconfig. A
local set records both in `set.json` in its state folder, `flotilla run` in a note (`local`).
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import click
import msgspec

from flotilla_cli.local import (
    ClusterError,
    LocalCluster,
    bus_by_kubeconfig,
    bus_by_url,
    default_state_dir,
    read_cluster,
)
from flotilla_common import logs
from flotilla_common.bus import readonly
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.permissions import OPERATOR, READER
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import Api, ApiError, Unreachable

_NO_BUS = (
    "no bus is known for this cluster: give --nats URL, or set FLOTILLA_NATS. The bus of `flotilla up` is found if "
    "KUBECONFIG is the local cluster's own, or unset; that of `flotilla run` if KUBECONFIG is the same there"
)


class Target(msgspec.Struct, frozen=True):
    """The cluster of a command, in the terms of a kubeconfig; an empty file means kubectl's own places."""

    kubeconfig: str = ""
    context: str = ""


class BusTarget(msgspec.Struct, frozen=True):
    """The bus of a command, with the settings that a connection needs."""

    nats_url: str
    nats_creds: str
    nats_ca: str = ""
    allow_open_bus: bool = True  # commands read only, and decide nothing
    bus_copies: int = 1


def target_of(kubeconfig: str, context: str) -> Target:
    """Return the cluster that these options mean."""
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named:
        found = read_cluster(default_state_dir())
        named = found.kubeconfig if found else ""
    return Target(named, context)


def nats_url_of(option: str, kubeconfig: str = "") -> str:
    """Return the URL of the bus for these options; empty if none is known.

    The bus of a local set counts only together with the set's own kubeconfig, or without any: the reasons of one
    cluster would mislead about objects of another.
    """
    given = option or os.environ.get("FLOTILLA_NATS")
    if given:
        return given
    found = set_of(kubeconfig)
    if found and not found.bare:
        return found.nats
    noted = bus_by_kubeconfig(_named(kubeconfig))
    return noted.nats_url if noted else ""


def required_nats_url(option: str) -> str:
    """Return the bus for a command that needs one. Raises click.ClickException if none is known."""
    url = nats_url_of(option)
    if not url:
        raise click.ClickException(_NO_BUS)
    return url


def set_of(kubeconfig: str) -> LocalCluster | None:
    """Return the local set that this kubeconfig belongs to; the default set if none is named."""
    named = _named(kubeconfig)
    return _set_beside(Path(named)) if named else read_cluster(default_state_dir())


def _named(kubeconfig: str) -> str:
    return kubeconfig or os.environ.get("KUBECONFIG", "")


def bus_target_of(url: str, kubeconfig: str = "") -> BusTarget:
    """Return the bus with FLOTILLA_NATS_CREDS and FLOTILLA_NATS_CA, or else the credentials recorded for it.

    They are recorded by the local set or the `flotilla run` that this bus belongs to.
    """
    creds, authority = os.environ.get("FLOTILLA_NATS_CREDS", ""), os.environ.get("FLOTILLA_NATS_CA", "")
    found = set_of(kubeconfig)
    known = found if found and found.nats == url else bus_by_url(url)
    return BusTarget(url, creds or (known.nats_creds if known else ""), authority or (known.nats_ca if known else ""))


def namespace_of(option: str, target: Target) -> str:
    """Return the namespace for this option; without it that of the kubeconfig's context, as kubectl does."""
    if option:
        return option
    try:
        return asyncio.run(load_config(target, reader=read_here)).namespace
    except ConfigError:
        return "default"  # callers that need the cluster report what is wrong with its configuration


def _set_beside(kubeconfig: Path) -> LocalCluster | None:
    """Return the local set that wrote this kubeconfig, or None."""
    try:
        found = read_cluster(kubeconfig.absolute().parent)
    except (ClusterError, OSError):
        return None  # not a state folder of ours
    return found if found and Path(found.kubeconfig) == kubeconfig.absolute() else None


def _bus(target: BusTarget) -> NatsBus:
    """Connect as the user whose credentials these are; the file of the read-only user bears its name."""
    if Path(target.nats_creds).name == f"{READER}.seed":
        return NatsBus(target, name=READER, inbox_prefix=readonly.INBOX, api=readonly.PREFIX)
    return NatsBus(target, name=OPERATOR)


@asynccontextmanager
async def open_api(target: Target, timeout: float = 30.0) -> AsyncGenerator[Api]:
    """Yield a client of the apiserver, closed at the end. `timeout` in seconds holds for each request."""
    _quiet()
    api = KubeClient(await load_config(target, reader=read_here), user_agent="flotilla", timeout=timeout)
    try:
        yield api
    finally:
        await api.close()


@asynccontextmanager
async def open_bus(url: str, kubeconfig: str = "") -> AsyncGenerator[NatsBus]:
    """Yield the bus, closed at the end. It connects in the background: see `flotilla_insight.bus.connection`."""
    _quiet()
    bus = _bus(bus_target_of(url, kubeconfig))
    try:
        yield bus
    finally:
        await bus.close()


@contextmanager
def reported() -> Generator[None]:
    """Turn failures of cluster and bus into one line for the user and exit code 1."""
    try:
        yield
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    except Unreachable as error:
        raise click.ClickException(f"the apiserver does not answer: {error}") from error
    except ApiError as error:
        raise click.ClickException(error.message) from error
    except BusError as error:
        raise click.ClickException(f"the bus does not answer: {error}") from error


def _quiet() -> None:
    """Silence the logs: a command reports its failures itself."""
    logs.configure("error", "text")
