"""Checks an image before it is pushed: its programs start, and need nothing that is not in it.

Otherwise a missing loader of a dynamically linked program shows only on a node, as `exec …: no such file or directory`
of a file that exists.
"""

import os
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from flotilla_dev.image import base, oci, tree

SECONDS = 120
"""Timeout of a program; it counts as failed then."""

_LOADED = {2: "dynamic section", 3: "program interpreter"}
"""Types of program headers of programs that need a loader (ELF: PT_DYNAMIC, PT_INTERP)."""


def require_static(program: Path) -> None:
    """Raise ClickException unless the program runs in an image with nothing else."""
    found = _problem(program.read_bytes()[:65536])
    if found:
        raise click.ClickException(
            f"{program} {found}, so it cannot start in an image of its own. "
            "Delete it and run this again: it is then got as this repository pins it."
        )


def start(layers: Sequence[oci.Layer], commands: Sequence[Sequence[str]]) -> str:
    """Run the commands once in the layers' root file system, as its user. Return what could not be tried.

    The result is empty if all was tried. Raises ClickException if a command fails.
    """
    enter = entrance()
    if not enter:
        return "not started before the push: that needs root, or user namespaces"
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        for layer in layers:
            tree.write(layer.files(), root)
        for command in commands:
            _run([*enter, str(root), *command])
    return ""


def _run(command: Sequence[str]) -> None:
    environment = {"PATH": f"/usr/local/bin:/usr/bin:{_SYSTEM}", "HOME": "/", "LANG": "C.UTF-8"}
    limited = ["timeout", "--kill-after=1", str(SECONDS), *command]
    reply = subprocess.run(
        limited, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if reply.returncode:
        raise click.ClickException(
            f"The image does not start: `{' '.join(command[-2:])}` in it ended with {reply.returncode}:\n"
            f"{(reply.stdout + reply.stderr).strip()}\n"
            "Nothing was pushed. `flotilla image build --refresh` builds it again."
        )


_SYSTEM = "/usr/sbin:/sbin:/bin"


def entrance() -> list[str]:
    """Return the command that runs another one with a folder as its root; empty if this user may not do so."""
    if os.geteuid() == 0:
        return ["chroot", f"--userspec={base.USER}:{base.USER}"]
    enter = ["unshare", "--map-root-user"]
    try:
        tried = subprocess.run([*enter, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return [] if tried.returncode else [*enter, "chroot"]


def _problem(content: bytes) -> str:
    """Return why this program cannot run by itself; empty if it can (64-bit ELF, as Go writes it)."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < 64:
        return "is no program for 64-bit Linux"
    (offset,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    kinds = {struct.unpack_from("<I", content, offset + number * size)[0] for number in range(count)}
    needs = [name for kind, name in sorted(_LOADED.items()) if kind in kinds]
    return f"is linked dynamically (it has a {' and a '.join(needs)})" if needs else ""
