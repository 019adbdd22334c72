"""Images without a registry to pull them from: a static busybox, and a page that says which image it is.

They carry the names of images that manifests use all the time, so that these work unchanged: what is called nginx
serves a page on port 80. Each tag has a page of its own, and therefore an image id of its own.
"""

import gzip
import hashlib
import io
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from flotilla_cli.cluster.provision import machine
from flotilla_cli.cluster.realnodes.containerd import PAUSE
from flotilla_cli.cluster.realnodes.debian import busybox
from flotilla_common.control.plan import Json

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

SERVER = ("/bin/sh", "-c", "trap 'exit 0' TERM QUIT INT; httpd -f -p 80 -h /www & while :; do wait; done")
"""A first process must ask for the signal that ends it; httpd alone would be killed after the whole grace period."""

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
"""The images that every set has, and what they run."""


class Image(msgspec.Struct, frozen=True):
    """An image as a registry stores it: blobs by digest, and the manifest that names them."""

    blobs: dict[str, bytes]
    manifest: bytes

    @property
    def digest(self) -> str:
        """The manifest's digest: what a pod's status calls the image's id."""
        return digest(self.manifest)


def build(reference: str, command: Sequence[str], files: Mapping[str, bytes] | None = None) -> Image:
    """An image with busybox in it, a page that says `reference`, and further files by their absolute path."""
    base = _compressed(root_files())
    own = _compressed(_tar({"/www/index.html": f"{reference}\n".encode(), **(files or {})}))
    config = msgspec.json.encode(_config(command, [base, own]))
    layers = [described(LAYER, blob) for _, blob in (base, own)]
    manifest: Json = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(CONFIG, config),
        "layers": layers,
    }
    return Image({digest(blob): blob for blob in (base[1], own[1], config)}, msgspec.json.encode(manifest))


def digest(content: bytes) -> str:
    """The name of a blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def described(media_type: str, blob: bytes) -> Json:
    """How a manifest names a blob."""
    return {"mediaType": media_type, "size": len(blob), "digest": digest(blob)}


def _config(command: Sequence[str], layers: list[tuple[str, bytes]]) -> Json:
    return {
        "architecture": machine(),
        "os": "linux",
        "created": "2024-01-01T00:00:00Z",
        "config": {"Cmd": list(command), "Env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [identity for identity, _ in layers]},
        "history": [{"created": "2024-01-01T00:00:00Z", "created_by": "flotilla"} for _ in layers],
    }


@cache
def _compressed(tar: bytes) -> tuple[str, bytes]:
    """The digest of a layer's content, and the layer."""
    return digest(tar), gzip.compress(tar, compresslevel=1, mtime=0)


@cache
def root_files() -> bytes:
    program = busybox()
    assert program is not None, "busybox-static was required before"
    names = subprocess.run([program, "--list-full"], capture_output=True, text=True, check=True).stdout.split()
    files = {
        "/bin/busybox": program.read_bytes(),
        "/etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "/etc/group": b"root:x:0:\nnogroup:x:65534:\n",
    }
    links = {f"/{name}": "/bin/busybox" for name in names if name != "bin/busybox"} | {"/bin/sh": "/bin/busybox"}
    return _tar(files, links, ("/tmp", "/root", "/proc", "/sys", "/dev", "/var/run"))


def _tar(files: Mapping[str, bytes], links: Mapping[str, str] | None = None, folders: Sequence[str] = ()) -> bytes:
    """A tar archive that depends on nothing but its content."""
    buffer = io.BytesIO()
    made: set[str] = set()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in folders:
            _add_folder(archive, made, path)
        for path, content in sorted(files.items()):
            _add_folder(archive, made, str(Path(path).parent))
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode = len(content), 0o755 if path.startswith("/bin/") else 0o644
            archive.addfile(entry, io.BytesIO(content))
        for path, target in sorted((links or {}).items()):
            _add_folder(archive, made, str(Path(path).parent))
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


def _add_folder(archive: tarfile.TarFile, made: set[str], path: str) -> None:
    for folder in [path, *map(str, Path(path).parents)][::-1]:
        name = folder.strip("/")
        if name and name not in made:
            made.add(name)
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(entry)
