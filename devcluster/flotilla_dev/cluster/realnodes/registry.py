"""The image registry of real nodes: crane's, on this machine's address in their network, with small images.

It keeps manifests in memory, so it is filled again by every command that needs it. The images need no registry to be
pulled from: they have a static busybox, and a page with their own name. They are named like images that manifests often
use, so that these work unchanged: `nginx` serves a page on port 80. Each tag has a page of its own, and therefore an
image id of its own.
"""

import asyncio
import io
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import aiohttp

from flotilla_cli.local import ClusterError
from flotilla_common.api.images import ImageName
from flotilla_common.clock import Clock
from flotilla_dev.cluster.ports import serves
from flotilla_dev.cluster.processes import Processes, until
from flotilla_dev.cluster.provision import machine
from flotilla_dev.cluster.realnodes.daemons import PAUSE
from flotilla_dev.cluster.realnodes.debian import busybox
from flotilla_dev.image import oci
from flotilla_dev.image.oci import MANIFEST, Image, Layer
from flotilla_dev.image.tree import Entry, File, Folder, Link

SERVER = ("/bin/sh", "-c", "trap 'exit 0' TERM QUIT INT; httpd -f -p 80 -h /www & while :; do wait; done")
"""Command of a web server. A first process must handle the signal that ends it: httpd alone would be killed late."""

SLEEPER = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done")
SHELL = ("/bin/sh",)

NAMED: dict[str, tuple[str, ...]] = {
    PAUSE: SLEEPER,
    **{f"nginx:{tag}": SERVER for tag in ("latest", "alpine", "mainline", "stable", "perl", "1.7.9", "1.25", "1.27")},
    **{f"httpd:{tag}": SERVER for tag in ("latest", "2.4")},
    **{f"busybox:{tag}": SHELL for tag in ("latest", "1.35", "1.36", "1.37", "stable")},
    "alpine:latest": SHELL,
    "centos:6.7": SHELL,
}
"""The images of every cluster, and their commands."""


def build(reference: str, command: Sequence[str], files: Mapping[str, bytes] | None = None) -> Image:
    """Build an image with busybox, a page that contains `reference`, and further files by absolute path."""
    own = {"www/index.html": File(f"{reference}\n".encode())}
    for path, content in (files or {}).items():
        own[path.lstrip("/")] = File(content, executable=path.startswith("/bin/"))
    run = {"Cmd": list(command), "Env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"], "WorkingDir": "/"}
    return oci.image([root_layer(), Layer.of("flotilla", own, compression=1)], machine(), run)


@cache
def root_layer() -> Layer:
    """Return the layer with busybox under all of its names."""
    program = busybox()
    assert program is not None, "busybox-static was required before"
    names = subprocess.run([program, "--list-full"], capture_output=True, text=True, check=True).stdout.split()
    files: dict[str, Entry] = {
        **{name: Link("/bin/busybox") for name in ("bin/sh", *names)},
        "bin/busybox": File(program.read_bytes(), executable=True),
        "etc/passwd": File(b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
        "etc/group": File(b"root:x:0:\nnogroup:x:65534:\n"),
        "tmp": Folder(0o1777),
        **{name: Folder(0o755) for name in ("root", "proc", "sys", "dev", "var/run")},
    }
    return Layer.of("busybox", files, compression=1)


NAME = "registry"
READY_WITHIN = 20.0  # seconds; it takes 0.1
TIMEOUT = aiohttp.ClientTimeout(total=60)


class Registry:
    """A running registry at `address` (`host:port`)."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def url(self) -> str:
        """The URL for containerd."""
        return f"http://{self.address}"

    async def serves(self) -> bool:
        """Report whether it responds."""
        return await serves(f"{self.url}/v2/")

    async def push(self, reference: str, command: Sequence[str], files: Mapping[str, bytes] | None = None) -> str:
        """Build an image under this name, as manifests name it. Return its digest."""
        image = await asyncio.to_thread(build, reference, command, files)
        await self.store(reference, image)
        return image.digest

    async def store(self, reference: str, image: Image) -> None:
        """Store an image under a name."""
        name = ImageName.parse(reference)
        async with aiohttp.ClientSession(self.url, timeout=TIMEOUT) as session:
            for digest, blob in image.blobs.items():
                await self._blob(session, name.path, digest, blob)
            manifest = {"Content-Type": MANIFEST}
            await self._send(session, "PUT", f"/v2/{name.path}/manifests/{name.tag}", image.manifest, manifest)

    async def _blob(self, session: aiohttp.ClientSession, path: str, digest: str, blob: bytes) -> None:
        async with session.head(f"/v2/{path}/blobs/{digest}") as found:
            if found.status == 200:
                return
        where = await self._send(session, "POST", f"/v2/{path}/blobs/uploads/", b"", {})
        upload = where.partition(self.address)[2] or where
        await self._send(session, "PUT", f"{upload}?digest={digest}", blob, {})

    async def _send(
        self, session: aiohttp.ClientSession, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> str:
        async with session.request(method, path, data=io.BytesIO(body), headers=headers) as reply:
            if reply.status >= 300:
                raise ClusterError(f"{method} {self.url}{path}: {reply.status} {await reply.text()}")
            return reply.headers.get("Location", "")


async def ensure(
    state_dir: Path, processes: Processes, program: Callable[[str], Path], clock: Clock, address: str, *, bound: bool
) -> Registry:
    """Return the cluster's registry, started if it does not run, with the usual images in it."""
    registry = Registry(address)
    await serve(registry, state_dir, processes, program, clock, bound=bound)
    for reference, command in NAMED.items():
        await registry.push(reference, command)
    return registry


async def serve(
    registry: Registry,
    state_dir: Path,
    processes: Processes,
    program: Callable[[str], Path],
    clock: Clock,
    *,
    bound: bool,
) -> None:
    """Start the registry if it does not run, and wait until it responds at its address."""
    current = processes.alive(NAME)
    if current is None or f"--address={registry.address}" not in current.argv:
        await processes.stop([NAME], clock, grace=0)
        blobs = state_dir / "registry"
        blobs.mkdir(parents=True, exist_ok=True)
        argv = [str(program("crane")), "registry", "serve", f"--address={registry.address}", f"--disk={blobs}"]
        current = processes.spawn(NAME, argv, bound=bound)
    problem = "The image registry did not start"
    await until(registry.serves, current, clock, READY_WITHIN, problem)
