"""The namespaces of nodes: made by the process that holds them, entered by all others."""

import sys
from collections.abc import Sequence
from pathlib import Path

from flotilla_cli.local import Process
from flotilla_common.clock import Clock
from flotilla_dev.cluster.processes import until

SHARED = ("net", "mnt", "uts", "ipc")  # the holder is in them itself; only its children are in the pid namespace
READY_WITHIN = 20.0  # seconds; it takes 0.3


def network_holder() -> list[str]:
    """Return a command that holds a network namespace and does nothing else."""
    return ["unshare", "--net", "--", "sleep", "infinity"]


def node_holder(folder: Path) -> list[str]:
    """Return a command that holds the namespaces of a node, with `init` as first process.

    If one of the two ends, both do.
    """
    return [
        *("unshare", "--net", "--mount", "--uts", "--ipc", "--pid"),
        *("--fork", "--kill-child", "--mount-proc", "--"),
        *(sys.executable, "-m", "flotilla_dev.cluster.realnodes.init", str(folder)),
    ]


def inside(holder: Process, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command in a node."""
    ns = Path(f"/proc/{holder.pid}/ns")
    kinds = {"net": "net", "mnt": "mount", "uts": "uts", "ipc": "ipc"}
    entered = [f"--{kinds[kind]}={ns / kind}" for kind in SHARED]
    return ["nsenter", *entered, f"--pid={ns / 'pid_for_children'}", "--", *command]


def inside_network(holder: Process, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command of this machine in another network namespace."""
    return ["nsenter", f"--net=/proc/{holder.pid}/ns/net", "--", *command]


def same(kind: str, pid: int) -> bool:
    """Report whether a process is in our namespace of this kind."""
    try:
        return Path(f"/proc/{pid}/ns/{kind}").readlink() == Path(f"/proc/self/ns/{kind}").readlink()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


async def separated(holder: Process, clock: Clock) -> None:
    """Wait until the holder of a network namespace has made it."""

    async def made() -> bool:
        return not same("net", holder.pid)

    await until(made, holder, clock, READY_WITHIN, "No network namespace could be made")
