"""The namespaces and control groups of nodes.

The process that holds a node makes its namespaces; all others enter them. A node has one control group per hierarchy,
in which its kubelet makes those of its pods. It is named after the holding process, so that every later command can
find and remove groups that are left over, also of clusters that were killed.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from flotilla_cli.local import Process, start_ticks
from flotilla_common.clock import Clock
from flotilla_dev.cluster.processes import until

SHARED = ("net", "mnt", "uts", "ipc")  # the holder is in them itself; only its children are in the pid namespace
READY_WITHIN = 20.0  # seconds; it takes 0.3

GROUP_NAME = re.compile(r"flotilla-(\d+)-(\d+)")
MOUNTS = Path("/proc/self/mountinfo")
REMOVED_WITHIN = 10.0  # seconds; a killed process leaves its group a moment later
SWEEP_POLL = 0.02
THAWED = {"freezer.state": "THAWED", "cgroup.freeze": "0"}  # version 1, version 2


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


def in_our_namespace(kind: str, pid: int) -> bool:
    """Report whether a process is in our namespace of this kind."""
    try:
        return Path(f"/proc/{pid}/ns/{kind}").readlink() == Path(f"/proc/self/ns/{kind}").readlink()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False


async def separated(holder: Process, clock: Clock) -> None:
    """Wait until the holder of a network namespace has made it."""

    async def made() -> bool:
        return not in_our_namespace("net", holder.pid)

    await until(made, holder, clock, READY_WITHIN, "No network namespace could be made")


def group_name(holder: Process) -> str:
    """Return the group of the node that this process holds."""
    return f"flotilla-{holder.pid}-{holder.started}"


def hierarchies(mounts: str) -> list[Path]:
    """Return where control groups are mounted: one place (version 2), or one per controller (version 1)."""
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        own, _, source = line.partition(" - ")
        kind, _, options = source.split(maxsplit=2)
        if kind in {"cgroup", "cgroup2"}:
            found.setdefault(f"{kind} {options}", Path(own.split()[4]))
    return list(found.values())


def make_group(holder: Process) -> str:
    """Make the group of a node. Return its path within each hierarchy."""
    group = group_name(holder)
    for root in hierarchies(MOUNTS.read_text(encoding="utf-8")):
        (root / group).mkdir(exist_ok=True)
        for field in ("cpuset.cpus", "cpuset.mems"):  # a fresh group of version 1 has neither, and can run nothing
            file = root / group / field
            if file.exists() and not (root / "cgroup.controllers").exists():
                file.write_text((root / field).read_text(encoding="ascii"), encoding="ascii")
    return f"/{group}"


def leftover_groups() -> list[Path]:
    """Return the groups of nodes whose holder has ended, inner ones first."""
    return [group for root in hierarchies(MOUNTS.read_text(encoding="utf-8")) for group in _abandoned(root)]


def _abandoned(root: Path) -> Iterator[Path]:
    for top in root.glob("flotilla-*"):
        found = GROUP_NAME.fullmatch(top.name)
        if found and start_ticks(int(found[1])) != int(found[2]):
            yield from (
                Path(folder) for folder, *_ in os.walk(top, topdown=False)
            )  # what vanishes meanwhile is no error


async def sweep_groups(clock: Clock) -> None:
    """Remove leftover groups, waiting a moment for processes that are just ending."""
    deadline = clock.monotonic() + REMOVED_WITHIN
    while (found := leftover_groups()) and clock.monotonic() < deadline:
        for group in found:
            _remove_group(group)
        await clock.sleep(SWEEP_POLL)


def _remove_group(group: Path) -> None:
    try:
        for field, running in THAWED.items():  # a paused container that was killed ends only when it goes on
            if (group / field).exists():
                (group / field).write_text(running, encoding="ascii")
        group.rmdir()
    except OSError:  # busy for a moment, or another command was faster: the next round sees
        return
