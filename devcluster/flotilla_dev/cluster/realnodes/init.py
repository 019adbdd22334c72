"""The first process of a node: mounts its own files, then runs as long as the node and reaps its orphans.

`namespaces.node_holder` starts it in fresh namespaces, with the node's folder as argument. The node sees this machine's
files, except that `/run` is empty, and that the directories of kubelet and containerd are in its folder. Only the
standard library is imported, because this process stays in memory.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

OWN = {  # parent: the entries that the node has for itself, each a directory of its folder
    Path("/var/lib"): ("kubelet", "containerd", "cni"),
    Path("/var/log"): ("pods", "containers"),
}
TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""Settings of the whole machine that a kubelet would change; here they have its values already."""

FORWARDING = {
    "ip_forward": "1",
    "conf/all/proxy_arp": "1",  # a node answers for its pods, so that no routes to them are needed
}
READY = "ready"


def prepare(folder: Path) -> None:
    """Make the mounts and settings of the node."""
    socket.sethostname(folder.name)
    for name, value in FORWARDING.items():
        (Path("/proc/sys/net/ipv4") / name).write_text(value, encoding="ascii")
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for parent, names in OWN.items():
        _replace(parent, {name: folder / name for name in names})
    _settle_tunables(Path("/run/tunables"))
    _mount("--make-rshared", "/")  # so that mounts of volumes reach the containers that ask for it


def _replace(parent: Path, own: dict[str, Path]) -> None:
    """Mount a copy of a directory with the same entries, of which these are replaced or added.

    So no directory has to be made on the machine itself, where it would stay behind.
    """
    copy = Path("/run/copy") / parent.name
    copy.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(copy))
    for entry in parent.iterdir():
        if entry.name not in own:
            _copy(entry, copy / entry.name)
    for name, source in own.items():
        source.mkdir(parents=True, exist_ok=True)
        (copy / name).mkdir()
        _mount("--bind", str(source), str(copy / name))
    _mount("--move", str(copy), str(parent))


def _copy(entry: Path, target: Path) -> None:
    if entry.is_symlink():
        target.symlink_to(entry.readlink())
    elif entry.is_dir():
        target.mkdir()
        _mount("--rbind", str(entry), str(target))
    elif entry.is_file():
        target.touch()
        _mount("--bind", str(entry), str(target))


def _settle_tunables(folder: Path) -> None:
    for name, value in TUNABLES.items():
        real = Path("/proc/sys") / name
        if real.exists():
            shown = folder / name
            shown.parent.mkdir(parents=True, exist_ok=True)
            shown.write_text(value, encoding="ascii")
            _mount("--bind", str(shown), str(real))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _bury(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return


def _end(*_: object) -> None:
    sys.exit()


def main() -> None:
    """Prepare the node, report it, and stay."""
    folder = Path(sys.argv[1])
    prepare(folder)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGCHLD, _bury)
    (folder / READY).touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
