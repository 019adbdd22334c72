"""Pushes images to a registry with crane; without another one named, to that of the local set's nodes."""

import subprocess
import tempfile
from pathlib import Path

import msgspec

from flotilla_cli.cluster.realnodes import network
from flotilla_cli.cluster.realnodes.images import Image
from flotilla_cli.image import oci
from flotilla_cli.image.errors import ImageError


def registry_of(state_dir: Path) -> str:
    """The address of a local set's registry. Raises ImageError when the set has no real nodes."""
    port, found = state_dir / "registry.json", network.read(state_dir)
    if found is None or not port.exists():
        raise ImageError(
            "The local set has no registry: `flotilla up --real-nodes 1` starts one, --registry names another."
        )
    return f"{found.host}:{msgspec.json.decode(port.read_bytes(), type=int)}"


def push(image: Image, registry: str, reference: str, crane: Path) -> None:
    """Push an image to `registry` (`host:port`) under a name. Raises ImageError."""
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as name:
        folder = Path(name)
        oci.write(image, folder, reference)
        command = [crane, "push", folder, f"{registry}/{reference}"]
        reply = subprocess.run(command, capture_output=True, text=True, check=False)
    if reply.returncode:
        raise ImageError(f"{reference} could not be pushed to {registry}:\n{reply.stderr.strip()}")
