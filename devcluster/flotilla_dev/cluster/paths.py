"""The folders of programs and buses, and a lock between commands."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from flotilla_cli.local import user_state_dir


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
