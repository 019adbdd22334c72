"""The folders of local clusters, buses and programs, and locks between commands.

The state of a local cluster is in its folder (`flotilla_cli.local` reads it). Only folders that carry our mark are ever
used or removed, and one command works in a folder at a time.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec

from flotilla_cli.local import STATE_FILE, ClusterError, LocalCluster, user_state_dir, write_private

MARK_FILE = ".flotilla"
LOCK_FILE = ".lock"
NEEDED_BYTES = 512 << 20  # etcd's write-ahead log alone takes 128 MiB at once


def write(state_dir: Path, cluster: LocalCluster) -> None:
    """Write the state file atomically."""
    write_private(state_dir / STATE_FILE, msgspec.json.format(msgspec.json.encode(cluster), indent=2) + b"\n")


def claim(state_dir: Path) -> None:
    """Mark the folder as ours. Raises ClusterError if it holds something else or cannot be written."""
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
    """Report whether the folder carries our mark."""
    return (state_dir / MARK_FILE).exists()


def only_one(state_dir: Path) -> AbstractContextManager[None]:
    """Keep other commands out of the folder for the time of the block. Raises ClusterError if one works there."""

    def refuse() -> None:
        raise ClusterError(f"Another flotilla command works in {state_dir}. Try again when it is done.")

    return locked(state_dir / LOCK_FILE, refuse)


def cache_dir() -> Path:
    """Return the folder of downloaded and built programs: FLOTILLA_CACHE, or `flotilla` in the user's cache folder."""
    own = os.environ.get("FLOTILLA_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flotilla"


def default_bus_dir() -> Path:
    """Return the state folder of the bus of `flotilla run --nats-listen`."""
    return user_state_dir() / "bus"


@contextmanager
def locked(file: Path, busy: Callable[[], object] = lambda: None) -> Generator[None]:
    """Hold an exclusive lock among all commands for the time of the block.

    The lock ends with this process, even if it is killed. If another one has it, call `busy` and wait for it.
    """
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
