"""Builds the image of layers that are cached until one of their inputs changes.

It also builds an image of nats-server under its public names, for registries of machines that pull nothing.
"""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec

from flotilla_common.control.plan import Json
from flotilla_dev.cluster.programs import NATS
from flotilla_dev.cluster.provision import machine
from flotilla_dev.cluster.state import cache_dir, locked
from flotilla_dev.image import base, oci, python_packages, sbom, tree, trial
from flotilla_dev.image.base import Package
from flotilla_dev.image.oci import Image, Layer
from flotilla_dev.image.tree import File, Folder, Link, Tree

REPOSITORY = "flotilla/flotilla"
DEV_REPOSITORY = "flotilla/devcluster"
BASE, DEPENDENCIES, OWN, DEV = "base", "dependencies", "flotilla", "devcluster"

LOAD = (
    "from importlib.metadata import entry_points; "
    "print([one.load() for one in entry_points(group='console_scripts') if one.name.startswith('flotilla')])"
)

Say = Callable[[str], None]

BUS_NAMES = (f"nats:{NATS.dotted}", f"nats:{NATS.dotted}-alpine")

BUS_PROGRAM = "usr/local/bin/nats-server"  # where the one on Alpine has it; the other one has it in the root

BUS_RUN: Json = {
    "User": f"{base.USER}:{base.USER}",
    "Env": ["PATH=/usr/local/bin"],
    "Entrypoint": [f"/{BUS_PROGRAM}"],
    "ExposedPorts": {"4222/tcp": {}, "6222/tcp": {}, "8222/tcp": {}},
    "WorkingDir": "/",
}
"""Configuration of containers with nats-server."""


class BuiltLayer(msgspec.Struct, frozen=True):
    """A layer, and Debian's packages in it."""

    layer: Layer
    packages: list[Package] = []


class Built(msgspec.Struct, frozen=True):
    """The image, and its layers from the lowest."""

    image: Image
    layers: Sequence[oci.Layer]

    @property
    def bill(self) -> bytes:
        """The bill of materials (CycloneDX), which is also in the image."""
        (own,) = (layer for layer in self.layers if layer.title == OWN)
        listed = own.files()[sbom.PATH]
        assert isinstance(listed, tree.File)
        return listed.content


def reference(repository: str = REPOSITORY) -> str:
    """Return the image's name, tagged with the version."""
    return f"{repository}:{version('flotilla-cli')}"


def run_config() -> Json:
    """Return how a container starts: `flotilla`, or a service if that is the command; never as root."""
    return {
        "User": f"{base.USER}:{base.USER}",
        "Env": [
            f"PATH=/{python_packages.PROGRAMS}:/usr/bin",
            "LANG=C.UTF-8",
            "PYTHONDONTWRITEBYTECODE=1",
            "PYTHONUNBUFFERED=1",
        ],
        "Entrypoint": [f"/{python_packages.PROGRAMS}/flotilla"],
        "Cmd": ["--help"],
        "WorkingDir": "/",
        "Labels": {
            "org.opencontainers.image.title": "flotilla",
            "org.opencontainers.image.version": version("flotilla-cli"),
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
    }


def first_commands() -> list[list[str]]:
    """Return commands that show that the image starts: its entry point, and a load of all other programs."""
    run = run_config()
    return [[*run["Entrypoint"], *run["Cmd"]], [base.PYTHON, "-c", LOAD]]


def build(say: Say, *, refresh: bool = False) -> Built:
    """Build the image for this machine's architecture. Raises ClickException.

    The base keeps its Debian packages until `refresh`, which takes the newest ones.
    """
    return _image(_layers(say, refresh=refresh, dev=False))


def build_dev(say: Say) -> Built:
    """Build the image with this package on top, for the containers of compose.yaml that make a cluster."""
    return _image(_layers(say, refresh=False, dev=True))


def _image(made: Sequence[BuiltLayer]) -> Built:
    layers = [one.layer for one in made]
    return Built(oci.image(layers, machine(), run_config()), layers)


def _layers(say: Say, *, refresh: bool, dev: bool) -> list[BuiltLayer]:
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as name:
        scratch = Path(name)
        common = recipe(tree, oci, base)
        named = cache_key(common, machine().encode())
        lowest = cached(BASE, named, partial(_base, scratch, say), refresh=refresh)
        requirements = python_packages.locked()
        lower = (common, recipe(python_packages), lowest.layer.content.encode(), requirements.encode())
        make = partial(_dependencies, scratch, say, lowest, requirements)
        middle = cached(DEPENDENCIES, cache_key(*lower), make)
        services = python_packages.service_packages()
        named = cache_key(*lower, recipe(sbom), *python_packages.sources(services))
        made = [lowest, middle, cached(OWN, named, partial(_own, scratch, say, lowest, services))]
        if dev:
            named = cache_key(*lower, *python_packages.sources(python_packages.LOCAL_PACKAGES))
            made.append(cached(DEV, named, partial(_dev, scratch, say, lowest)))
        return made


def _base(scratch: Path, say: Say) -> BuiltLayer:
    say("the base: Debian's packages")
    files, described = base.make(scratch)
    tree.write(files, scratch / "root")
    say("the base: compiling Python's library")
    return BuiltLayer(oci.Layer.of(BASE, base.compiled(files, scratch / "root")), list(described))


def _dependencies(scratch: Path, say: Say, lowest: BuiltLayer, requirements: str) -> BuiltLayer:
    say("the locked dependencies")
    return BuiltLayer(_compiled(DEPENDENCIES, python_packages.dependencies(requirements, scratch), scratch, lowest))


def _own(scratch: Path, say: Say, lowest: BuiltLayer, services: Sequence[str]) -> BuiltLayer:
    say("our packages")
    bill = sbom.bill(python_packages.exported(), lowest.packages, without=python_packages.LOCAL_PACKAGES)
    files = {**python_packages.own(scratch, services), sbom.PATH: tree.File(bill)}
    return BuiltLayer(_compiled(OWN, files, scratch, lowest))


def _dev(scratch: Path, say: Say, lowest: BuiltLayer) -> BuiltLayer:
    say("what runs a local cluster")
    return BuiltLayer(_compiled(DEV, python_packages.own(scratch, python_packages.LOCAL_PACKAGES), scratch, lowest))


def _compiled(title: str, files: Tree, scratch: Path, lowest: BuiltLayer) -> oci.Layer:
    root = scratch / "root"
    if not root.exists():
        tree.write(lowest.layer.files(), root)
    return oci.Layer.of(title, base.compiled(files, root))


def bus_image(program: Path) -> Image:
    """Return the image with this program. Raises ClickException unless it is linked statically."""
    return oci.image([bus_layer(program)], machine(), BUS_RUN)


def bus_layer(program: Path) -> oci.Layer:
    """Return the layer of that image. Raises ClickException unless the program is linked statically."""
    trial.require_static(program)
    files = {
        BUS_PROGRAM: File(program.read_bytes(), executable=True),
        "nats-server": Link(f"/{BUS_PROGRAM}"),
        "tmp": Folder(0o1777),
        **{name: File(text.encode()) for name, text in base.ACCOUNTS.items()},
    }
    return oci.Layer.of("nats-server", files)


KEPT = 5
"""Versions of each layer that stay cached, for a few branches."""


def cache_key(*parts: bytes) -> str:
    """Return a name for all inputs of a layer."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:32]


def recipe(*modules: ModuleType) -> bytes:
    """Return the code that makes a layer, as one of its inputs."""
    return b"".join(Path(str(module.__file__)).read_bytes() for module in modules)


def cached(title: str, named: str, make: Callable[[], BuiltLayer], *, refresh: bool = False) -> BuiltLayer:
    """Return the layer of this name, made if it is not cached."""
    folder = cache_dir() / "image"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{title}-{named}.msgpack"
    with locked(folder / ".lock"):
        if path.exists() and not refresh:
            path.touch()  # it is the youngest again
            return msgspec.msgpack.decode(path.read_bytes(), type=BuiltLayer)
        made = make()
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.msgpack.encode(made))
        partial.replace(path)
        for old in sorted(folder.glob(f"{title}-*.msgpack"), key=lambda one: one.stat().st_mtime)[:-KEPT]:
            old.unlink()
        return made
