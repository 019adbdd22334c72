"""Installs Debian's packages: for real nodes, which use runc, CNI plugins, nft, a static busybox of the machine."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from flotilla_cli.local import ClusterError
from flotilla_dev.cluster.processes import run
from flotilla_dev.cluster.state import locked

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
PLUGIN_DIRS = (Path("/opt/cni/bin"), Path("/usr/lib/cni"))
PLUGINS = ("bridge", "host-local", "loopback", "portmap")
LOCK = Path("/run/lock/flotilla-packages.lock")
"""Lock for installing packages: a second command waits for it, where apt-get itself would fail."""
LOCK_TIMEOUT = "DPkg::Lock::Timeout=120"
"""Seconds that apt-get waits for others, such as the system's own upgrades."""


def program(name: str) -> Path | None:
    """Return a program of the machine, also from directories that only root has on PATH."""
    found = shutil.which(name, path=PATH)
    return Path(found) if found else None


def plugin_dir() -> Path | None:
    """Return the directory of the CNI plugins."""
    return next((folder for folder in PLUGIN_DIRS if all((folder / name).exists() for name in PLUGINS)), None)


def busybox() -> Path | None:
    """Return a busybox that runs in an image without anything else."""
    found = program("busybox")
    return found if found and not _needs_libraries(found) else None


def _needs_libraries(path: Path) -> bool:
    reply = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return reply.returncode == 0 and "=>" in reply.stdout


Needs = Mapping[str, Callable[[], Path | None]]
"""Finders of what is needed, by the Debian package that has it."""

NEEDS: Needs = {
    "runc": lambda: program("runc"),
    "containernetworking-plugins": plugin_dir,
    "nftables": lambda: program("nft"),
    "busybox-static": busybox,
    "iproute2": lambda: program("ip"),
    "util-linux": lambda: program("nsenter"),
}


def missing(needs: Needs) -> list[str]:
    """Return the packages that have to be installed."""
    return [package for package, find in needs.items() if find() is None]


def require_root() -> None:
    """Raise ClusterError without root: real nodes need namespaces, mounts and control groups."""
    if os.geteuid() != 0:
        raise ClusterError(
            "Real nodes can only be made by root: containerd and kubelet need namespaces, mounts and control groups. "
            "Try `sudo`, or stay with fake nodes (without --real-nodes)."
        )


def install(say: Callable[[str], None], needs: Needs = NEEDS, purpose: str = "Real nodes") -> None:
    """Install missing packages. Raises ClusterError, with their names, if that fails."""
    if not missing(needs):
        return
    with locked(LOCK):
        if packages := missing(needs):
            _install(packages, purpose, say)
            if still := missing(needs):
                raise ClusterError(f"After {_command(packages)} these are still missing: {', '.join(still)}.")


def _install(packages: Sequence[str], purpose: str, say: Callable[[str], None]) -> None:
    if not shutil.which("apt-get"):
        raise ClusterError(
            f"{purpose} need what Debian has in the packages {', '.join(packages)}. Install it with this system's own "
            f"package manager (CNI plugins go to {PLUGIN_DIRS[0]} or {PLUGIN_DIRS[1]})."
        )
    say(_command(packages))
    problem = f"{purpose} need more than is installed, and `{_command(packages)}` failed"
    _apt(["update", "-qq"], problem)
    _apt(["install", "-qq", "-y", "--no-install-recommends", "-o", LOCK_TIMEOUT, *packages], problem)


def _command(packages: Sequence[str]) -> str:
    return f"apt-get install {' '.join(packages)}"


def _apt(arguments: list[str], problem: str) -> None:
    run(["apt-get", *arguments], problem, env={"DEBIAN_FRONTEND": "noninteractive"})
