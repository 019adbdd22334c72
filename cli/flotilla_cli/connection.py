"""Which cluster and which bus a command means, and the way to them.

The cluster: `--kubeconfig`, KUBECONFIG, the local set of `flotilla up`, then the places where kubectl looks. The bus:
`--nats`, FLOTILLA_NATS, the local set that the kubeconfig belongs to, the `flotilla run` for the same kubeconfig. A
local set tells both in `set.json` in its state folder, `flotilla run` in `noted_buses`.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import click
import msgspec

from flotilla_cli import noted_buses
from flotilla_cli.cluster import local_set
from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.layout import default_state_dir
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_common import logs
from flotilla_common.bus import reading
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.permissions import OPERATOR, READER
from flotilla_common.clock import Clock
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import Api, ApiError, Unreachable

_NO_BUS = (
    "no bus is known for this cluster: give --nats URL, or set FLOTILLA_NATS. The bus of `flotilla up` is known when "
    "KUBECONFIG names the set's own kubeconfig, or nothing; that of `flotilla run` when KUBECONFIG is the same there"
)


class Target(msgspec.Struct, frozen=True):
    """The cluster that is meant, in the terms of a kubeconfig; an empty file means kubectl's own places."""

    kubeconfig: str = ""
    context: str = ""


class BusTarget(msgspec.Struct, frozen=True):
    """The bus that is meant."""

    nats_url: str
    nats_creds: str
    nats_ca: str = ""
    allow_open_bus: bool = True  # a command only reads, and decides nothing
    bus_copies: int = 1


def target_of(kubeconfig: str, context: str) -> Target:
    """The cluster for these options."""
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named:
        found = local_set.read(default_state_dir())
        named = found.kubeconfig if found else ""
    return Target(named, context)


def nats_url_of(option: str, kubeconfig: str = "") -> str:
    """The bus for these options; empty if none is known.

    The bus of a local set is meant only together with the set's own kubeconfig, or with none: the reasons of one
    cluster would mislead about objects of another.
    """
    given = option or os.environ.get("FLOTILLA_NATS")
    if given:
        return given
    found = set_of(kubeconfig)
    if found and not found.bare:
        return found.nats
    noted = noted_buses.by_kubeconfig(_named(kubeconfig))
    return noted.nats_url if noted else ""


def required_nats_url(option: str) -> str:
    """The bus for a command that needs one. Raises click.ClickException when none is known."""
    url = nats_url_of(option)
    if not url:
        raise click.ClickException(_NO_BUS)
    return url


def set_of(kubeconfig: str) -> LocalSet | None:
    """The local set that this kubeconfig belongs to; the default one if none is named."""
    named = _named(kubeconfig)
    return _set_beside(Path(named)) if named else local_set.read(default_state_dir())


def _named(kubeconfig: str) -> str:
    return kubeconfig or os.environ.get("KUBECONFIG", "")


def bus_target_of(url: str, kubeconfig: str = "") -> BusTarget:
    """FLOTILLA_NATS_CREDS and FLOTILLA_NATS_CA, else what the local set or the `flotilla run` with this bus has."""
    creds, authority = os.environ.get("FLOTILLA_NATS_CREDS", ""), os.environ.get("FLOTILLA_NATS_CA", "")
    found = set_of(kubeconfig)
    known = found if found and found.nats == url else noted_buses.by_url(url)
    return BusTarget(url, creds or (known.nats_creds if known else ""), authority or (known.nats_ca if known else ""))


def namespace_of(option: str, target: Target) -> str:
    """The namespace for this option: without one that of the kubeconfig's context, as for kubectl."""
    if option:
        return option
    try:
        return asyncio.run(load_config(target, reader=read_here)).namespace
    except ConfigError:
        return "default"  # whoever needs the cluster will say what is wrong with its configuration


def _set_beside(kubeconfig: Path) -> LocalSet | None:
    """The local set that wrote this kubeconfig, if one did."""
    try:
        found = local_set.read(kubeconfig.absolute().parent)
    except (ClusterError, OSError):
        return None  # somebody else's folder
    return found if found and Path(found.kubeconfig) == kubeconfig.absolute() else None


def _bus(target: BusTarget) -> NatsBus:
    """As the user whose credentials these are; a file of the user that only reads bears its name."""
    if Path(target.nats_creds).name == f"{READER}.seed":
        return NatsBus(target, name=READER, inbox_prefix=reading.INBOX, api=reading.PREFIX)
    return NatsBus(target, name=OPERATOR)


@asynccontextmanager
async def open_api(target: Target, timeout: float = 30.0) -> AsyncGenerator[Api]:
    """The apiserver, closed at the end. `timeout` in seconds holds for each request."""
    _quiet()
    api = KubeClient(await load_config(target, reader=read_here), user_agent="flotilla", timeout=timeout)
    try:
        yield api
    finally:
        await api.close()


@asynccontextmanager
async def open_bus(url: str, kubeconfig: str = "") -> AsyncGenerator[NatsBus]:
    """The bus, closed at the end. It connects in the background: see `connected`."""
    _quiet()
    bus = _bus(bus_target_of(url, kubeconfig))
    try:
        yield bus
    finally:
        await bus.close()


async def connected(bus: NatsBus, clock: Clock, seconds: float = 3.0) -> None:
    """Wait for the connection. Raises BusError when it takes longer than `seconds`."""
    deadline = clock.monotonic() + seconds
    while not bus.connected:
        if clock.monotonic() > deadline:
            raise BusError(f"no connection within {seconds:g}s{f' ({bus.trouble})' if bus.trouble else ''}")
        await clock.sleep(0.02)


@contextmanager
def reported() -> Generator[None]:
    """Turn what can go wrong with cluster and bus into one line for the user and exit code 1."""
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
    """Logs are for services; a command says what went wrong itself."""
    logs.configure("error", "text")
