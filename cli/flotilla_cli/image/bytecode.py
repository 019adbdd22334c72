"""Compiles a layer's Python with the image's own interpreter: the root file system is read-only, so it has to be there
before the first start.

Compiled files are never checked against their source: that saves a `stat` per import, and they depend on no time.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from flotilla_cli.image import base, tree
from flotilla_cli.image.errors import ImageError
from flotilla_cli.image.tree import Entry, Tree

LOADER = "usr/lib/*-linux-gnu/ld-linux-*.so.?"


def compiled(layer: Tree, interpreter: Path) -> dict[str, Entry]:
    """The layer with its bytecode; `interpreter` is the folder with the unpacked base. Raises ImageError."""
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as name:
        folder = Path(name)
        sources = {path: entry for path, entry in layer.items() if path.endswith(".py")}
        tree.write(sources, folder)
        _compile(folder, interpreter)
        return {**layer, **tree.read(folder)}


def _compile(folder: Path, root: Path) -> None:
    loader = next(root.glob(LOADER))
    # One process, and no random order of sets: the same source gives the same bytes.
    command = [loader, "--library-path", loader.parent, root / base.PYTHON.lstrip("/"), "-m", "compileall", "-qq"]
    options = ["--invalidation-mode", "unchecked-hash", "-s", folder, "-p", "/", folder]
    reply = subprocess.run(
        [*command, *options],
        env={**os.environ, "PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if reply.returncode:
        raise ImageError(f"Python files of the image could not be compiled:\n{reply.stdout}{reply.stderr}")
