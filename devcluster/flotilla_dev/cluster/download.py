"""Downloads releases, the fast way where the internet is reachable.

Each file is checked against the sum that this repository pins for it (`sums.txt`); files without a sum are not
downloaded. A machine without internet notices within seconds (one short connect per product) and falls back to the next
way.
"""

import asyncio
import hashlib
import io
import tarfile
from collections.abc import Collection
from functools import cache
from importlib import resources
from pathlib import Path

import aiohttp
import msgspec

from flotilla_cli.local import ClusterError
from flotilla_cli.output import Say
from flotilla_dev.cluster.programs import Product

TIMEOUT = aiohttp.ClientTimeout(total=600, sock_connect=3, sock_read=30)
CHUNK = 1 << 20


class Unavailable(ClusterError):
    """The error that a release cannot be reached from here; another way may work."""


class Unpinned(Unavailable):
    """The error that no sum of the release is pinned here, so that it must not be used."""


class Asset(msgspec.Struct, frozen=True):
    """One file of a release: a program, or an archive that contains it."""

    program: str
    url: str


def assets(product: Product, machine: str) -> list[Asset]:
    """Return the files of a product's release for Linux on this machine (amd64, arm64)."""
    version, system = product.version, f"linux-{machine}"
    if product.name == "kubernetes":
        base = f"https://dl.k8s.io/release/{version}/bin/linux/{machine}"
        return [Asset(name, f"{base}/{name}") for name in product.packages]
    uname = {"amd64": "x86_64", "arm64": "aarch64"}[machine]
    files = {  # of each project on GitHub, below its releases
        "etcd": f"etcd-io/etcd/releases/download/{version}/etcd-{version}-{system}.tar.gz",
        "kwok": f"kubernetes-sigs/kwok/releases/download/{version}/kwok-{system}",
        "containerd": f"containerd/containerd/releases/download/{version}/containerd-{product.dotted}-{system}.tar.gz",
        "crane": f"google/go-containerregistry/releases/download/{version}/go-containerregistry_Linux_"
        f"{'x86_64' if machine == 'amd64' else machine}.tar.gz",
        "coredns": f"coredns/coredns/releases/download/{version}/coredns_{product.dotted}_linux_{machine}.tgz",
        "nats": f"nats-io/nats-server/releases/download/{version}/nats-server-{version}-{system}.tar.gz",
        "natscli": f"nats-io/natscli/releases/download/{version}/nats-{product.dotted}-{system}.zip",
        "compose": f"docker/compose/releases/download/{version}/docker-compose-linux-{uname}",
    }
    own = {"helm": f"https://get.helm.sh/helm-{version}-{system}.tar.gz"}
    address = own.get(product.name) or f"https://github.com/{files[product.name]}"
    return [Asset(program, address) for program in product.packages]


@cache
def pinned_sums() -> dict[str, str]:
    """Return the SHA-256 sums (hexadecimal) that are pinned here, by address."""
    text = resources.files("flotilla_dev.cluster").joinpath("sums.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {url: wanted for wanted, url in rows}


async def download(product: Product, names: Collection[str], machine: str, into: Path, say: Say) -> None:
    """Download these programs of a product into this folder.

    Raises Unpinned before any request, Unavailable if the release cannot be reached, and ClusterError if a file has not
    the pinned sum.
    """
    wanted = [asset for asset in assets(product, machine) if asset.program in names]
    for asset in wanted:
        if asset.url not in pinned_sums():
            raise Unpinned(f"{asset.url}: no SHA-256 sum is pinned for it")
    async with aiohttp.ClientSession(timeout=TIMEOUT, trust_env=True) as session:
        fetched: dict[str, bytes] = {}  # an archive may hold several programs
        for asset in wanted:
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
        content = await _fetch(session, asset.url, lambda text: say(f"{title}, {text}"))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Unavailable(f"{asset.url}: {error or type(error).__name__}") from error
    verify(asset.url, content, pinned_sums()[asset.url])
    return content


async def _fetch(session: aiohttp.ClientSession, url: str, say: Say) -> bytes:
    async with session.get(url) as reply:
        reply.raise_for_status()
        buffer = bytearray()
        async for chunk in reply.content.iter_chunked(CHUNK):
            buffer += chunk
            say(f"{len(buffer) >> 20} of {(reply.content_length or 0) >> 20} MiB")
        return bytes(buffer)


def verify(url: str, content: bytes, expected: str) -> None:
    """Check a file against its pinned SHA-256 sum (hexadecimal). Raises ClusterError."""
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ClusterError(
            f"{url} is not the file that is pinned here: its SHA-256 sum is {found}, expected was {expected}. "
            "Nothing was installed."
        )


def unpack(asset: Asset, content: bytes) -> bytes:
    """Extract the program from its archive, or return it as it is."""
    if asset.url.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = next(entry for entry in archive if entry.isfile() and Path(entry.name).name == asset.program)
            extracted = archive.extractfile(member)
            assert extracted is not None
            return extracted.read()
    return content
