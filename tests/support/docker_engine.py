"""A Docker engine of a test's own, for machines that have none, or whose engine tests must not touch.

    async with docker_engine(tmp_path, program) as engine:
        engine.load("nats:2.15.2", image)
        engine.docker("run", "--detach", "nats:2.15.2")
        engine.inside("curl", "http://127.0.0.1:8222")     # where ports are published

It is Debian's docker.io, unpacked into the cache: nothing is installed. It runs in namespaces of its own, with an
overlay on /etc and an empty /run, so that the machine sees neither its networks nor its files. The kernel ends all of
it with the test's process, however that ends. Nothing is pulled: images are loaded (`stand_ins`).
"""

import fcntl
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from flotilla_cli.local import Process
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.processes import Processes
from flotilla_dev.cluster.realnodes import isolation
from flotilla_dev.cluster.state import cache_dir
from flotilla_dev.image import base, tree
from flotilla_dev.image.oci import Image
from tests.support.cluster import eventually

PACKAGES = (
    *("docker.io", "containerd", "runc", "tini", "iptables"),
    *("libdevmapper1.02.1", "libseccomp2", "libxtables12", "libmnl0", "libnftnl11"),
)
LIBRARIES = "usr/lib/x86_64-linux-gnu"
SETTLE = """\
ip link set lo up
mount -t tmpfs tmpfs /run
for folder in etc opt; do
    own=/run/over/$folder
    mkdir -p $own/upper $own/work
    mount -t overlay overlay /$folder -o lowerdir=/$folder,upperdir=$own/upper,workdir=$own/work
done
exec "$@"
"""
"""Commands run in the namespaces before the engine starts, which would leave files in /etc, /opt and /run."""

COMMAND_SECONDS = 300
DATA = "data"


class DockerEngine:
    """A running engine. `environment`: variables for programs that use it."""

    def __init__(self, folder: Path, holder: Process, root: Path) -> None:
        self._holder = holder
        self.environment = {
            **os.environ,
            "PATH": _path(root),
            "DOCKER_HOST": f"unix://{folder / 'docker.sock'}",
            "DOCKER_CONFIG": str(folder / "config"),
        }

    def docker(self, *arguments: str, check: bool = True, cwd: Path | None = None) -> str:
        """Run the docker command, and return what it prints; raises with its error output."""
        return self._run(["docker", *arguments], check=check, cwd=cwd)

    def inside(self, *command: str, stdin: str = "", cwd: Path | None = None) -> str:
        """Run a program of this machine where the engine's published ports are; raises with what it prints."""
        return self._run(self.inside_command(*command), stdin=stdin, check=True, cwd=cwd)

    def inside_command(self, *command: str) -> list[str]:
        """Return the command line that runs the command in the engine's namespaces."""
        return isolation.inside_network(self._holder, command)

    def load(self, reference: str, image: Image) -> None:
        """Have an image of ours under a name, as if it had been pulled."""
        archive = docker_archive(reference, image)
        subprocess.run(["docker", "load", "--quiet"], input=archive, env=self.environment, check=True, timeout=60)

    def _run(self, command: list[str], *, stdin: str = "", check: bool, cwd: Path | None = None) -> str:
        reply = subprocess.run(
            command,
            input=stdin,
            env=self.environment,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if check and reply.returncode:
            raise AssertionError(f"{' '.join(command)}: {reply.stdout}{reply.stderr}")
        return reply.stdout


@asynccontextmanager
async def docker_engine(folder: Path, program: Callable[[str], Path]) -> AsyncGenerator[DockerEngine]:
    """Run an engine without images for the time of the block, with the `compose` command.

    Its data is in the folder, and is removed.
    """
    root, clock = unpacked(), SystemClock()
    processes = Processes(folder)
    try:
        holder = processes.spawn("holder", _holder(), bound=True)
        await isolation.separated(holder, clock)
        engine = DockerEngine(folder, holder, root)
        plugins = folder / "config" / "cli-plugins"
        plugins.mkdir(parents=True)
        (plugins / "docker-compose").symlink_to(program("docker-compose"))
        command = isolation.inside(
            holder, ["sh", "-ec", SETTLE, "settle", *_daemon(folder, isolation.make_group(holder))]
        )
        libraries = {"LD_LIBRARY_PATH": str(root / LIBRARIES), "XTABLES_LIBDIR": str(root / LIBRARIES / "xtables")}
        daemon = processes.spawn("dockerd", command, bound=True, env={"PATH": _path(root), **libraries})
        await eventually(lambda: _answers(engine, processes, daemon), 60)
        yield engine
    finally:
        await processes.stop(["holder", "dockerd"], clock, grace=0)
        await isolation.sweep_groups(clock)
        shutil.rmtree(folder / DATA)


def unpacked() -> Path:
    """Return the folder with Debian's packages, downloaded on first use."""
    root = cache_dir() / "docker-debian-12"
    with (cache_dir() / ".docker.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".docker-") as scratch:
                _unpack(Path(scratch))
                (Path(scratch) / "root").rename(root)
    return root


def _unpack(scratch: Path) -> None:
    base.require_debian()
    found = base.download(PACKAGES, scratch)
    files = {name: entry for package in found for name, entry in base.files(package)}
    alternatives = {f"usr/sbin/{name}": tree.Link(f"{name}-nft") for name in ("iptables", "ip6tables")}
    tree.write({**files, **alternatives}, scratch / "root")


def _holder() -> list[str]:
    """Return a command that holds the engine's namespaces: when it ends, the kernel ends everything in them."""
    kinds = ("--net", "--mount", "--uts", "--ipc", "--pid")
    return ["unshare", *kinds, "--fork", "--kill-child", "--mount-proc", "--", "sleep", "infinity"]


def _path(root: Path) -> str:
    return ":".join([*(str(root / part) for part in ("usr/bin", "usr/sbin")), os.environ["PATH"]])


def _daemon(folder: Path, cgroup: str) -> list[str]:
    return [
        "dockerd",
        f"--host=unix://{folder / 'docker.sock'}",
        f"--data-root={folder / DATA}",
        f"--cgroup-parent={cgroup}",
        "--oom-score-adjust=0",  # root may not lower it everywhere
    ]


def _answers(engine: DockerEngine, processes: Processes, daemon: Process) -> bool:
    assert processes.alive(daemon.name), Path(daemon.log).read_text(encoding="utf-8")[-3000:]
    return bool(engine.docker("info", "--format", "{{.ID}}", check=False).strip())


def docker_archive(reference: str, image: Image) -> bytes:
    """Return the image as `docker load` reads it: its blobs, and a list that names them."""
    manifest = json.loads(image.manifest)
    index = {
        "Config": _blob(manifest["config"]["digest"]),
        "RepoTags": [reference],
        "Layers": [_blob(layer["digest"]) for layer in manifest["layers"]],
    }
    files = {**{_blob(name): blob for name, blob in image.blobs.items()}, "manifest.json": json.dumps([index]).encode()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _blob(name: str) -> str:
    return f"blobs/{name.replace(':', '/')}"
