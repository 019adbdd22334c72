"""Release downloads: the quick way where the internet is open. Each file is checked against the release's own sum.

A machine without internet finds out within seconds (one short connect per product) and goes on to the next way.
"""

import asyncio
import hashlib
import io
import tarfile
from collections.abc import Collection
from pathlib import Path

import aiohttp
import msgspec

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.programs import Product
from flotilla_cli.cluster.progress import Say

PATIENCE = aiohttp.ClientTimeout(total=600, sock_connect=3, sock_read=30)
CHUNK = 1 << 20


class Unavailable(ClusterError):
    """A release cannot be had from here; another way may work."""


class Asset(msgspec.Struct, frozen=True):
    """One file of a release: a program, or an archive that holds it. `sums`: where its SHA-256 sums are."""

    program: str
    url: str
    sums: str = ""


def assets(product: Product, machine: str) -> list[Asset]:
    """The files of a product's release for Linux on this machine (amd64, arm64)."""
    version, system = product.version, f"linux-{machine}"
    match product.name:
        case "kubernetes":
            base = f"https://dl.k8s.io/release/{version}/bin/linux/{machine}"
            return [Asset(name, f"{base}/{name}", f"{base}/{name}.sha256") for name in product.packages]
        case "etcd":
            base = f"https://github.com/etcd-io/etcd/releases/download/{version}"
            return [Asset("etcd", f"{base}/etcd-{version}-{system}.tar.gz", f"{base}/SHA256SUMS")]
        case "kwok":
            return [Asset("kwok", f"https://github.com/kubernetes-sigs/kwok/releases/download/{version}/kwok-{system}")]
        case "containerd":
            archive = f"https://github.com/containerd/containerd/releases/download/{version}"
            archive += f"/containerd-{product.dotted}-{system}.tar.gz"
            return [Asset(name, archive, f"{archive}.sha256sum") for name in product.packages]
        case "crane":
            base = f"https://github.com/google/go-containerregistry/releases/download/{version}"
            named = {"amd64": "x86_64"}.get(machine, machine)
            url = f"{base}/go-containerregistry_Linux_{named}.tar.gz"
            return [Asset("crane", url, f"{base}/checksums.txt")]
        case _:
            base = f"https://github.com/nats-io/nats-server/releases/download/{version}"
            return [Asset("nats-server", f"{base}/nats-server-{version}-{system}.tar.gz", f"{base}/SHA256SUMS")]


async def download(product: Product, names: Collection[str], machine: str, into: Path, say: Say) -> None:
    """Fetch these programs of a product into this folder. Raises Unavailable when the release cannot be reached."""
    async with aiohttp.ClientSession(timeout=PATIENCE, trust_env=True) as session:
        fetched: dict[str, bytes] = {}  # an archive may hold several programs
        for asset in assets(product, machine):
            if asset.program not in names:
                continue
            if asset.url not in fetched:
                fetched = {asset.url: await _checked(session, asset, product, say)}
            program = await asyncio.to_thread(unpack, asset, fetched[asset.url])
            path = into / asset.program
            path.write_bytes(program)
            path.chmod(0o755)


async def _checked(session: aiohttp.ClientSession, asset: Asset, product: Product, say: Say) -> bytes:
    title = f"downloading {asset.program}"
    try:
        say(f"{title} {product.version}")
        sums = (await _fetch(session, asset.sums)).decode() if asset.sums else ""
        content = await _fetch(session, asset.url, lambda text: say(f"{title}, {text}"))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unavailable(f"{asset.url}: {error or type(error).__name__}") from error
    verify(asset.url, content, sums)
    return content


async def _fetch(session: aiohttp.ClientSession, url: str, say: Say = lambda _: None) -> bytes:
    async with session.get(url) as reply:
        reply.raise_for_status()
        buffer = bytearray()
        async for chunk in reply.content.iter_chunked(CHUNK):
            buffer += chunk
            say(f"{len(buffer) >> 20} of {(reply.content_length or 0) >> 20} MiB")
        return bytes(buffer)


def verify(url: str, content: bytes, sums: str) -> None:
    """Check a file against the release's list of sums (a lone sum, or `sum name` lines). Raises ClusterError."""
    if not sums:
        return
    name = url.rpartition("/")[2]
    rows = [line.split() for line in sums.splitlines() if line.strip()]
    wanted = next((row[0] for row in rows if len(row) == 1 or row[-1].lstrip("*") == name), "")
    if hashlib.sha256(content).hexdigest() != wanted:
        raise ClusterError(f"{url} does not have the SHA-256 sum that its release states; nothing was installed.")


def unpack(asset: Asset, content: bytes) -> bytes:
    """The program out of its archive, or as it is."""
    if asset.url.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = next(entry for entry in archive if entry.isfile() and Path(entry.name).name == asset.program)
            extracted = archive.extractfile(member)
            assert extracted is not None
            return extracted.read()
    return content
