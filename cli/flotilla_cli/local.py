"""Access to the clusters and buses that run on this machine.

Commands find them by files in the user's state folder, private to the user: the state file of `flotilla up`, and a note
per `flotilla run` with a bus of its own, which lasts as long as that command. So `flotilla tail` finds the bus by the
cluster's kubeconfig, and the credentials by the bus. The package flotilla-dev (`devcluster/`) starts the programs.
"""

import contextlib
import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import click
import msgspec
import structlog

STATE_FILE = "set.json"
HOST = "127.0.0.1"
"""The address of everything in a cluster without real nodes."""


class ClusterError(click.ClickException):
    """A failure to set up, check or stop a local cluster; the message says what to do next."""


def default_state_dir() -> Path:
    """Return the state folder of `flotilla up`: FLOTILLA_STATE, or `flotilla/up` in the user's state folder."""
    own = os.environ.get("FLOTILLA_STATE")
    return Path(own) if own else user_state_dir() / "up"


def notes_dir() -> Path:
    """Return the folder in which every `flotilla run` with a bus of its own leaves a note on how to reach it."""
    return user_state_dir() / "runs"


def user_state_dir() -> Path:
    """Return our folder among the user's state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "flotilla"


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch(mode=0o600)
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)


class Process(msgspec.Struct, frozen=True):
    """One started program. `started` is in clock ticks since boot `boot`: together with the pid it is unique."""

    name: str
    pid: int
    started: int
    boot: str
    argv: list[str]
    log: str


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it does not run or is a zombie.

    A killed program of many threads is a zombie as soon as its first thread is gone; until the last one is, it holds
    its ports and files.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
    threads, started = int(fields[16]), int(fields[18])
    return None if state in "ZX" and threads <= 1 else started


def is_alive(process: Process) -> bool:
    """Report whether exactly this process still runs; reaps it if it is our child and has ended."""
    reap(process.pid)
    return process.boot == boot_id() and start_ticks(process.pid) == process.started


def reap(pid: int) -> None:
    """Collect the exit status of an ended child; another process's children are left to it."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def bound_command(argv: Sequence[str], signal_name: str = "KILL") -> list[str]:
    """Return the command line of a program that the kernel sends the signal when its parent ends."""
    return ["setpriv", "--pdeathsig", signal_name, "--", *argv]


class Ports(msgspec.Struct, frozen=True):
    """The ports of the control plane, on the loopback address."""

    apiserver: int
    etcd: int
    etcd_peer: int


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """One local cluster: addresses for commands, ports to start it again, and whether its demo has been shown."""

    kubeconfig: str
    nats: str
    nats_creds: str = ""  # the folder with the credentials of services and people
    nats_ca: str = ""  # the authority of the bus's certificate, if it speaks TLS
    ports: Ports
    nats_port: int
    nats_monitor: int
    webhook_port: int
    console_port: int = 0
    services: dict[str, int]  # the port of each service's /readyz and /metrics
    programs: dict[str, str]
    nodes: int  # fake ones
    real_nodes: int = 0
    bare: bool = False  # a cluster only: no NATS, no services of ours
    address: str = HOST  # of the apiserver
    demo_done: bool = False

    @property
    def webhook_url(self) -> str:
        """The URL under which the apiserver reaches the webhook."""
        return f"https://127.0.0.1:{self.webhook_port}"


def read_cluster(state_dir: Path) -> LocalCluster | None:
    """Return the cluster of a state folder, or None for an empty one. Raises ClusterError for a damaged file."""
    path = state_dir / STATE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=LocalCluster)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise ClusterError(f"{path} is damaged ({error}). `flotilla down` stops what runs and removes it.") from error


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
def noted_bus(bus: NotedBus) -> Generator[None]:
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


def bus_by_url(url: str) -> NotedBus | None:
    """Return the bus with this address, or None."""
    return next((bus for bus in _living() if bus.nats_url == url), None)


def bus_by_kubeconfig(kubeconfig: str) -> NotedBus | None:
    """Return the bus of this cluster's services if there is exactly one; an empty name means kubectl's own places."""
    wanted = absolute_kubeconfig(kubeconfig)
    found = [bus for bus in _living() if bus.kubeconfig == wanted]
    return found[0] if len(found) == 1 else None


def absolute_kubeconfig(kubeconfig: str) -> str:
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
