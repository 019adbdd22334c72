"""Layers that were made before, by what they were made of. Layers nobody took for a while make room."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec

from flotilla_cli.cluster.layout import cache_dir, locked
from flotilla_cli.image.oci import Layer
from flotilla_cli.image.packages import Package

KEPT = 5
"""How many versions of each layer stay: those of some branches."""


class Made(msgspec.Struct, frozen=True):
    """A layer, and Debian's packages in it."""

    layer: Layer
    packages: list[Package] = []


def key(*parts: bytes) -> str:
    """A name for all that a layer is made of."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:32]


def recipe(*modules: ModuleType) -> bytes:
    """The code that makes a layer: it is made anew when that changes."""
    return b"".join(Path(str(module.__file__)).read_bytes() for module in modules)


def get(title: str, named: str, make: Callable[[], Made], *, refresh: bool = False) -> Made:
    """The layer of this name, made if it is not there."""
    folder = cache_dir() / "image"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{title}-{named}.msgpack"
    with locked(folder / ".lock"):
        if path.exists() and not refresh:
            path.touch()  # it is the youngest again
            return msgspec.msgpack.decode(path.read_bytes(), type=Made)
        made = make()
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.msgpack.encode(made))
        partial.replace(path)
        for old in sorted(folder.glob(f"{title}-*.msgpack"), key=lambda one: one.stat().st_mtime)[:-KEPT]:
            old.unlink()
        return made
