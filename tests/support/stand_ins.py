"""Images under the names of public ones, for engines that pull nothing: each contains the program of its name.

The programs are those of `flotilla up`, in the versions that compose.yaml names. The public images contain more
(certificates, time zones; on Alpine a shell); of this only the parts that compose.yaml uses are here.
"""

from collections.abc import Callable
from pathlib import Path

import yaml

from flotilla_common.api.images import ImageName
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.provision import machine
from flotilla_dev.cluster.realnodes.debian import busybox
from flotilla_dev.image import build, oci, tree
from flotilla_dev.image.oci import Image, digest
from flotilla_dev.image.tree import Entry, File, Folder

COMPOSE = Path(__file__).parents[2] / "compose.yaml"
NATS = build.BUS_NAMES[1]  # the Alpine variant
REGISTRY = "registry:3"
"""Name of the registry's own image; the stand-in runs crane's registry at the same port."""


def public_images() -> dict[str, str]:
    """Return the public images that compose.yaml names, and the program in each."""
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"].values()
    names = {service["image"] for service in services if "build" not in service}
    programs = {name: ImageName.parse(name).path.rpartition("/")[2] for name in names}
    return {name: "nats-server" if name == NATS else program for name, program in programs.items()}


def control_plane(program: Callable[[str], Path]) -> dict[str, Image]:
    """Return an image for each program, by name."""
    named = public_images().items()
    return {name: bus(program) if name == NATS else _image(program(inside)) for name, inside in named}


def bus(program: Callable[[str], Path]) -> Image:
    """Return an image with nats-server, and wget as on Alpine."""
    wget = busybox()
    assert wget is not None, "busybox-static is one of the packages that real nodes need"
    return _image(program("nats-server"), {"usr/bin/wget": File(wget.read_bytes(), executable=True)})


def registry(program: Callable[[str], Path]) -> Image:
    """Return a registry image that needs no configuration."""
    command = ["crane", "registry", "serve", "--address=0.0.0.0:5000", "--disk=/tmp"]
    return _image(program("crane"), run={"Entrypoint": command})


def _image(program: Path, more: tree.Tree | None = None, run: Json | None = None) -> Image:
    """Return an image of one layer, uncompressed because it is read once, on this machine."""
    files: dict[str, Entry] = {
        f"usr/local/bin/{program.name}": File(program.read_bytes(), executable=True),
        "tmp": Folder(0o1777),
        **(more or {}),
    }
    content = tree.archive(files)
    layer = oci.Layer(program.name, content, digest(content), len(content))
    return oci.image([layer], machine(), {"Env": ["PATH=/usr/local/bin:/usr/bin"], **(run or {})})
