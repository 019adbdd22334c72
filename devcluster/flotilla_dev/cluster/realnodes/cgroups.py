"""The control groups of nodes: one per node and hierarchy, in which its kubelet makes those of its pods.

A group is named after the process that holds the node, so that every later command can find and remove groups that are
left over, also of clusters that were killed.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from flotilla_cli.local import Process, start_ticks
from flotilla_common.clock import Clock

NAME = re.compile(r"flotilla-(\d+)-(\d+)")
MOUNTS = Path("/proc/self/mountinfo")
REMOVED_WITHIN = 10.0  # seconds; a killed process leaves its group a moment later
POLL = 0.02
THAWED = {"freezer.state": "THAWED", "cgroup.freeze": "0"}  # version 1, version 2


def name(holder: Process) -> str:
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


def make(holder: Process) -> str:
    """Make the group of a node. Return its path within each hierarchy."""
    group = name(holder)
    for root in hierarchies(MOUNTS.read_text(encoding="utf-8")):
        (root / group).mkdir(exist_ok=True)
        for field in ("cpuset.cpus", "cpuset.mems"):  # a fresh group of version 1 has neither, and can run nothing
            file = root / group / field
            if file.exists() and not (root / "cgroup.controllers").exists():
                file.write_text((root / field).read_text(encoding="ascii"), encoding="ascii")
    return f"/{group}"


def leftovers() -> list[Path]:
    """Return the groups of nodes whose holder has ended, inner ones first."""
    return [group for root in hierarchies(MOUNTS.read_text(encoding="utf-8")) for group in _abandoned(root)]


def _abandoned(root: Path) -> Iterator[Path]:
    for top in root.glob("flotilla-*"):
        found = NAME.fullmatch(top.name)
        if found and start_ticks(int(found[1])) != int(found[2]):
            yield from (
                Path(folder) for folder, *_ in os.walk(top, topdown=False)
            )  # what vanishes meanwhile is no error


async def sweep(clock: Clock) -> None:
    """Remove leftover groups, waiting a moment for processes that are just ending."""
    deadline = clock.monotonic() + REMOVED_WITHIN
    while (found := leftovers()) and clock.monotonic() < deadline:
        for group in found:
            _remove(group)
        await clock.sleep(POLL)


def _remove(group: Path) -> None:
    try:
        for field, running in THAWED.items():  # a paused container that was killed ends only when it goes on
            if (group / field).exists():
                (group / field).write_text(running, encoding="ascii")
        group.rmdir()
    except OSError:  # busy for a moment, or another command was faster: the next round sees
        return
