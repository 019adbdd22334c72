"""The set's own image registry: crane's, on this machine's address in the nodes' network, filled with small images.

It keeps manifests in memory, so it is filled again by every command that needs it.
"""

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import aiohttp

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.probes import serves
from flotilla_cli.cluster.process import Records, until
from flotilla_cli.cluster.realnodes import images
from flotilla_cli.image.oci import MANIFEST, Image
from flotilla_common.api.images import ImageName
from flotilla_common.clock import Clock

NAME = "registry"
READY_WITHIN = 20.0  # seconds; it takes 0.1
PATIENCE = aiohttp.ClientTimeout(total=60)


class Registry:
    """A registry that runs, at `address` (`host:port`)."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def url(self) -> str:
        """What containerd asks."""
        return f"http://{self.address}"

    async def serves(self) -> bool:
        """Whether it answers."""
        return await serves(f"{self.url}/v2/")

    async def push(self, reference: str, command: Sequence[str], files: Mapping[str, bytes] | None = None) -> str:
        """Build an image under this name, as manifests name it, and return its digest."""
        image = await asyncio.to_thread(images.build, reference, command, files)
        await self.store(reference, image)
        return image.digest

    async def store(self, reference: str, image: Image) -> None:
        """Put an image under a name."""
        name = ImageName.parse(reference)
        async with aiohttp.ClientSession(self.url, timeout=PATIENCE) as session:
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
    state_dir: Path, records: Records, program: Callable[[str], Path], clock: Clock, address: str, *, bound: bool
) -> Registry:
    """The set's registry, started if it does not run, with the images of every set in it."""
    registry = Registry(address)
    await serve(registry, state_dir, records, program, clock, bound=bound)
    for reference, command in images.NAMED.items():
        await registry.push(reference, command)
    return registry


async def serve(
    registry: Registry, state_dir: Path, records: Records, program: Callable[[str], Path], clock: Clock, *, bound: bool
) -> None:
    """Return when the registry answers at its address; it is started if it does not run."""
    current = records.alive(NAME)
    if current is None or f"--address={registry.address}" not in current.argv:
        await records.stop([NAME], clock, grace=0)
        blobs = state_dir / "registry"
        blobs.mkdir(parents=True, exist_ok=True)
        argv = [str(program("crane")), "registry", "serve", f"--address={registry.address}", f"--disk={blobs}"]
        current = records.spawn(NAME, argv, bound=bound)
    problem = f"The image registry did not start. End of {current.log}"
    await until(registry.serves, current, clock, READY_WITHIN, problem)
