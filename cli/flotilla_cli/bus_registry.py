"""Records the buses of `flotilla run` on this machine, for the commands that read one.

Each record is a small file in the user's state folder, private to the user, that lasts as long as its `flotilla run`.
So `flotilla tail` finds the bus by the cluster's kubeconfig, and the credentials by the bus.
"""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec
import structlog

from flotilla_cli.local.paths import notes_dir, write_private
from flotilla_cli.local.process import Process, boot_id, is_alive, start_ticks


class NotedBus(msgspec.Struct, frozen=True, kw_only=True):
    """A bus, as the settings of its users, and the cluster that its services work for."""

    nats_url: str
    nats_creds: str
    nats_ca: str
    kubeconfig: str  # as `flotilla run` was given it, made absolute; empty: kubectl's own places


class _Note(msgspec.Struct, frozen=True):
    bus: NotedBus
    keeper: Process


@contextlib.contextmanager
def noted(bus: NotedBus) -> Generator[None]:
    """Record the bus for the time of the block. Records whose writers were killed are removed."""
    file = notes_dir() / f"{os.getpid()}.json"
    try:
        for dead in [path for path, one in _notes() if not is_alive(one.keeper)]:
            dead.unlink(missing_ok=True)
        write_private(file, msgspec.json.encode(_Note(bus, _ourselves())))
    except OSError as error:
        structlog.get_logger().warning("cannot record the bus, other commands will not find it", error=str(error))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it was not written, or its folder is gone: there is nothing to remove
            file.unlink(missing_ok=True)


def by_url(url: str) -> NotedBus | None:
    """Return the bus with this address, or None."""
    return next((bus for bus in _living() if bus.nats_url == url), None)


def by_kubeconfig(kubeconfig: str) -> NotedBus | None:
    """Return the bus of this cluster's services if there is exactly one; an empty name means kubectl's own places."""
    wanted = absolute(kubeconfig)
    found = [bus for bus in _living() if bus.kubeconfig == wanted]
    return found[0] if len(found) == 1 else None


def absolute(kubeconfig: str) -> str:
    """Return the absolute path of a kubeconfig, or of several with colons between."""
    return os.pathsep.join(str(Path(name).absolute()) for name in kubeconfig.split(os.pathsep) if name)


def _ourselves() -> Process:
    return Process("flotilla run", os.getpid(), start_ticks(os.getpid()) or 0, boot_id(), [], "")


def _living() -> Iterator[NotedBus]:
    return (note.bus for _, note in _notes() if is_alive(note.keeper))


def _notes() -> Iterator[tuple[Path, _Note]]:
    for file in sorted(notes_dir().glob("*.json")):
        with contextlib.suppress(OSError, msgspec.MsgspecError):  # it ends just now, or is of another release
            yield file, msgspec.json.decode(file.read_bytes(), type=_Note)
