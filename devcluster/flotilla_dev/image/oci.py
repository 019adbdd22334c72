"""The image as registries and tools read it: layers, configuration, manifest, and a folder of all of them.

The format of that folder is the "image layout" of the OCI image-spec; `crane` pushes it.
"""

import gzip
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from flotilla_common.api.images import ImageName
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.processes import run
from flotilla_dev.image.tree import Tree, archive, opened

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

CREATED = "2024-01-01T00:00:00Z"  # tree.EPOCH
COMPRESSION = 6


class Layer(msgspec.Struct, frozen=True):
    """One layer: its title, its compressed archive, and the digest of the archive itself."""

    title: str
    blob: bytes
    content: str
    """The digest of the uncompressed archive, which the configuration names."""

    size: int
    """Bytes of the uncompressed archive."""

    @classmethod
    def of(cls, title: str, tree: Tree, compression: int = COMPRESSION) -> "Layer":
        """Return the layer with these files."""
        content = archive(tree)
        return cls(title, gzip.compress(content, compression, mtime=0), digest(content), len(content))

    def files(self) -> Tree:
        """Return its files."""
        return opened(gzip.decompress(self.blob))


class Image(msgspec.Struct, frozen=True):
    """An image as a registry stores it: blobs by digest, and the manifest that names them."""

    blobs: dict[str, bytes]
    manifest: bytes

    @property
    def digest(self) -> str:
        """The manifest's digest, which a pod's status has as the image's id."""
        return digest(self.manifest)


def image(layers: Sequence[Layer], architecture: str, run: Json) -> Image:
    """Return the image with these layers; `run` says how it is started (OCI image-spec, config.md)."""
    config = msgspec.json.encode(
        {
            "architecture": architecture,
            "os": "linux",
            "created": CREATED,
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [layer.content for layer in layers]},
            "history": [{"created": CREATED, "created_by": layer.title} for layer in layers],
        }
    )
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _described(CONFIG, config),
        "layers": [_described(LAYER, layer.blob) for layer in layers],
    }
    blobs = {digest(blob): blob for blob in (config, *(layer.blob for layer in layers))}
    return Image(blobs, msgspec.json.encode(manifest))


def digest(content: bytes) -> str:
    """Return the name of a blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _described(media_type: str, blob: bytes) -> Json:
    """Return a manifest's descriptor of a blob."""
    return {"mediaType": media_type, "size": len(blob), "digest": digest(blob)}


def write(made: Image, folder: Path, reference: str) -> None:
    """Write an image as a folder, as `crane push` and `skopeo copy oci:` read it."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    for name, blob in {**made.blobs, made.digest: made.manifest}.items():
        (blobs / name.removeprefix("sha256:")).write_bytes(blob)
    entry: Json = {
        **_described(MANIFEST, made.manifest),
        "annotations": {"org.opencontainers.image.ref.name": reference},
    }
    (folder / "index.json").write_bytes(msgspec.json.encode({"schemaVersion": 2, "manifests": [entry]}))
    (folder / "oci-layout").write_bytes(b'{"imageLayoutVersion": "1.0.0"}')


def push(made: Image, registry: str, reference: str, crane: Path) -> None:
    """Push an image to `registry` (`host:port`), under the path that mirrors of public registries use.

    That of `nats` is `library/nats`. Raises ClusterError.
    """
    name = ImageName.parse(reference)
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as scratch:
        folder = Path(scratch)
        write(made, folder, reference)
        command = [crane, "push", folder, f"{registry}/{name.path}:{name.tag}"]
        run(command, f"{reference} could not be pushed to {registry}")
