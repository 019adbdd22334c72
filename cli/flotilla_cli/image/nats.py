"""An image for nats-server under the names of the public ones, for registries of machines that pull nothing."""

from pathlib import Path

from flotilla_cli.cluster.programs import NATS
from flotilla_cli.cluster.provision import machine
from flotilla_cli.image import base, oci, trial
from flotilla_cli.image.oci import Image
from flotilla_cli.image.tree import File, Folder, Link
from flotilla_common.control.plan import Json

NAMES = (f"nats:{NATS.dotted}", f"nats:{NATS.dotted}-alpine")
PROGRAM = "usr/local/bin/nats-server"  # where the one on Alpine has it; the other one has it in the root
RUN: Json = {
    "User": f"{base.USER}:{base.USER}",
    "Env": ["PATH=/usr/local/bin"],
    "Entrypoint": [f"/{PROGRAM}"],
    "ExposedPorts": {"4222/tcp": {}, "6222/tcp": {}, "8222/tcp": {}},
    "WorkingDir": "/",
}
"""How a container starts."""


def image(program: Path) -> Image:
    """The image with this program. Raises ClickException unless it is linked statically."""
    return oci.image([layer(program)], machine(), RUN)


def layer(program: Path) -> oci.Layer:
    """What is in the image. Raises ClickException unless the program is linked statically."""
    trial.require_static(program)
    files = {
        PROGRAM: File(program.read_bytes(), executable=True),
        "nats-server": Link(f"/{PROGRAM}"),
        "tmp": Folder(0o1777),
        **{name: File(text.encode()) for name, text in base.ACCOUNTS.items()},
    }
    return oci.Layer.of("nats-server", files)
