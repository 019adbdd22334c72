"""The local set's state folder: what `flotilla up` wrote down, for itself, `down`, `status` and every other verb.

Only folders that carry our mark are ever used or removed, and one command works in a folder at a time.
"""

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from flotilla_cli.cluster.components import Ports
from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.layout import locked, write_private
from flotilla_cli.cluster.ports import HOST

SET_FILE = "set.json"
MARK_FILE = ".flotilla"
LOCK_FILE = ".lock"
NEEDED_BYTES = 512 << 20  # etcd's write-ahead log alone takes 128 MiB at once


class LocalSet(msgspec.Struct, frozen=True, kw_only=True):
    """One local set: addresses for the other verbs, ports to start it again, and whether its demo has been shown."""

    kubeconfig: str
    nats: str
    nats_creds: str = ""  # the folder with the credentials of services and people
    nats_ca: str = ""  # the authority of the bus's certificate, if it speaks TLS
    ports: Ports
    nats_port: int
    nats_monitor: int
    webhook_port: int
    services: dict[str, int]  # the port of each service's /readyz and /metrics
    programs: dict[str, str]
    nodes: int  # fake ones
    real_nodes: int = 0
    bare: bool = False  # a cluster only: no NATS, no services of ours
    address: str = HOST  # of the apiserver
    demo_done: bool = False

    @property
    def webhook_url(self) -> str:
        """Where the apiserver reaches the webhook."""
        return f"https://127.0.0.1:{self.webhook_port}"


def read(state_dir: Path) -> LocalSet | None:
    """What was written down; None when nothing was. Raises ClusterError for a damaged file."""
    path = state_dir / SET_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=LocalSet)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{path} is damaged ({error}). `flotilla down` stops what runs and removes it.") from error


def write(state_dir: Path, local_set: LocalSet) -> None:
    """Write it down, whole or not at all."""
    write_private(state_dir / SET_FILE, msgspec.json.format(msgspec.json.encode(local_set), indent=2) + b"\n")


def claim(state_dir: Path) -> None:
    """Make the folder ours. Raises ClusterError when it holds something else, or cannot be written."""
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
        if not is_ours(state_dir) and any(state_dir.iterdir()):
            raise ClusterError(f"{state_dir} is not empty and no state folder of Flotilla. Name another with --state.")
        (state_dir / MARK_FILE).touch()
        free = shutil.disk_usage(state_dir).free
    except OSError as error:
        raise ClusterError(f"{state_dir} cannot be used as state folder: {error.strerror}.") from error
    if free < NEEDED_BYTES:
        raise ClusterError(
            f"Only {free >> 20} MiB are free on the disk of {state_dir}; {NEEDED_BYTES >> 20} MiB are needed. "
            "Free some space, or name a folder on another disk with --state."
        )


def is_ours(state_dir: Path) -> bool:
    """Whether the folder carries our mark."""
    return (state_dir / MARK_FILE).exists()


def only_one(state_dir: Path) -> AbstractContextManager[None]:
    """Keep other commands out of the folder for the time of the block. Raises ClusterError when one works there."""

    def refuse() -> None:
        raise ClusterError(f"Another flotilla command works in {state_dir}. Try again when it is done.")

    return locked(state_dir / LOCK_FILE, refuse)
