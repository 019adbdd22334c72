"""Programs that real nodes use of the machine, not of our cache: runc, CNI plugins, nft, a static busybox."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
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


NEEDS: dict[str, Callable[[], Path | None]] = {  # Debian package: what we want of it
    "runc": lambda: program("runc"),
    "containernetworking-plugins": plugin_dir,
    "nftables": lambda: program("nft"),
    "busybox-static": busybox,
    "iproute2": lambda: program("ip"),
    "util-linux": lambda: program("nsenter"),
}


def missing() -> list[str]:
    """Return the packages that have to be installed."""
    return [package for package, find in NEEDS.items() if find() is None]


def require_root() -> None:
    """Raise ClusterError without root: real nodes need namespaces, mounts and control groups."""
    if os.geteuid() != 0:
        raise ClusterError(
            "Real nodes can only be made by root: containerd and kubelet need namespaces, mounts and control groups. "
            "Try `sudo`, or stay with fake nodes (without --real-nodes)."
        )


def install(say: Callable[[str], None]) -> None:
    """Install missing packages. Raises ClusterError, with their names, if that fails."""
    if not missing():
        return
    with locked(LOCK):
        if packages := missing():
            _install(packages, say)


def _install(packages: Sequence[str], say: Callable[[str], None]) -> None:
    command = f"apt-get install {' '.join(packages)}"
    if not shutil.which("apt-get"):
        raise ClusterError(
            f"Real nodes need what Debian has in the packages {', '.join(packages)}. Install it with this system's own "
            f"package manager (the CNI plugins go to {PLUGIN_DIRS[0]} or {PLUGIN_DIRS[1]})."
        )
    say(command)
    _apt(["update", "-qq"], command)
    _apt(["install", "-qq", "-y", "--no-install-recommends", "-o", LOCK_TIMEOUT, *packages], command)
    if missing():
        raise ClusterError(f"After `{command}` these are still missing: {', '.join(missing())}.")


def _apt(arguments: list[str], command: str) -> None:
    problem = f"Real nodes need more than is installed, and `{command}` failed"
    run(["apt-get", *arguments], problem, env={"DEBIAN_FRONTEND": "noninteractive"})
