"""Puts the image together: three layers, each made only when something in it changed, and how it is started."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import msgspec

from flotilla_cli.cluster.provision import machine
from flotilla_cli.cluster.realnodes.images import Image
from flotilla_cli.image import base, bytecode, cache, oci, python_packages, tree
from flotilla_cli.image.cache import Made
from flotilla_cli.image.packages import Package
from flotilla_cli.image.tree import Tree
from flotilla_common.control.plan import Json

REPOSITORY = "flotilla/flotilla"
BASE, DEPENDENCIES, OWN = "base", "dependencies", "flotilla"

Say = Callable[[str], None]


class Built(msgspec.Struct, frozen=True):
    """The image, its layers from the lowest, and Debian's packages in it."""

    image: Image
    layers: Sequence[oci.Layer]
    packages: Sequence[Package]


def reference(repository: str = REPOSITORY) -> str:
    """The image's name: the tag is the version."""
    return f"{repository}:{version('flotilla-cli')}"


def run_config() -> Json:
    """How a container starts: `flotilla`, or a service if that is the command; never as root."""
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


def build(say: Say, *, refresh: bool = False) -> Built:
    """The image for this machine's architecture. Raises ImageError.

    The base keeps the Debian packages it was made with until `refresh`, which takes the newest ones.
    """
    made = _layers(say, refresh=refresh)
    layers = [one.layer for one in made]
    packages = [package for one in made for package in one.packages]
    return Built(oci.image(layers, machine(), run_config()), layers, packages)


def _layers(say: Say, *, refresh: bool) -> list[Made]:
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as name:
        scratch = Path(name)
        recipe, architecture = cache.recipe(), machine().encode()
        lowest = cache.get(BASE, cache.key(recipe, architecture), partial(_base, scratch, say), refresh=refresh)
        requirements = python_packages.locked()
        named = cache.key(recipe, lowest.layer.content.encode(), requirements.encode())
        middle = cache.get(DEPENDENCIES, named, partial(_dependencies, scratch, say, lowest, requirements))
        sources = [part for path in python_packages.sources() for part in (str(path).encode(), path.read_bytes())]
        named = cache.key(recipe, middle.layer.content.encode(), *sources)
        return [lowest, middle, cache.get(OWN, named, partial(_own, scratch, say, lowest))]


def _base(scratch: Path, say: Say) -> Made:
    say("the base: Debian's packages")
    files, described = base.make(scratch)
    tree.write(files, scratch / "root")
    say("the base: compiling Python's library")
    return Made(oci.Layer.of(BASE, bytecode.compiled(files, scratch / "root")), list(described))


def _dependencies(scratch: Path, say: Say, lowest: Made, requirements: str) -> Made:
    say("the locked dependencies")
    return Made(_compiled(DEPENDENCIES, python_packages.dependencies(requirements, scratch), scratch, lowest))


def _own(scratch: Path, say: Say, lowest: Made) -> Made:
    say("our packages")
    return Made(_compiled(OWN, python_packages.own(scratch), scratch, lowest))


def _compiled(title: str, files: Tree, scratch: Path, lowest: Made) -> oci.Layer:
    root = scratch / "root"
    if not root.exists():
        tree.write(lowest.layer.files(), root)
    return oci.Layer.of(title, bytecode.compiled(files, root))
