"""Where things lie: one state folder per local cluster, one cache of programs per user."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """Downloaded and built programs: FLOTILLA_CACHE, or `flotilla` in the user's cache folder."""
    own = os.environ.get("FLOTILLA_CACHE")
    return Path(own) if own else _xdg("XDG_CACHE_HOME", ".cache") / "flotilla"


def default_state_dir() -> Path:
    """The state folder of `flotilla up`: FLOTILLA_STATE, or `flotilla/up` in the user's state folder."""
    own = os.environ.get("FLOTILLA_STATE")
    return Path(own) if own else _xdg("XDG_STATE_HOME", ".local/state") / "flotilla" / "up"


def default_bus_dir() -> Path:
    """The state folder of the bus of `flotilla run --nats-listen`: `flotilla/bus` in the user's state folder."""
    return _xdg("XDG_STATE_HOME", ".local/state") / "flotilla" / "bus"


def notes_dir() -> Path:
    """Where every `flotilla run` with a bus of its own says how to reach it."""
    return _xdg("XDG_STATE_HOME", ".local/state") / "flotilla" / "runs"


def _xdg(variable: str, fallback: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / fallback)


@contextmanager
def locked(file: Path, busy: Callable[[], object] = lambda: None) -> Generator[None]:
    """Have the block to ourselves among all commands; the lock ends with us, even if we are killed. When another one
    has it, `busy` is called, and then it is waited for."""
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            busy()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch(mode=0o600)
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)
