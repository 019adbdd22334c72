"""The lowest layer: Debian's Python with its libraries, without anything that a service does not run.

It has no shell, no package manager, no compiler. Files for scanners stay: os-release, each package's fields and
licence. Its Python also compiles all layers, because a read-only root file system must contain the bytecode from the
start.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from flotilla_dev.cluster.processes import run
from flotilla_dev.image import packages, tree
from flotilla_dev.image.packages import MERGED, Package
from flotilla_dev.image.tree import Entry, File, Folder, Link, Tree

USER = 65532
"""User of the services: the customary `nonroot` of images without a distribution."""

PYTHON = "/usr/bin/python3.11"
PACKAGES = (
    *("base-files", "ca-certificates", "tzdata"),
    *("libc6", "libgcc-s1", "zlib1g", "libexpat1", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libuuid1"),
    "libstdc++6",  # of re2, which is C++
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
)

LOADER = "usr/lib/*-linux-gnu/ld-linux-*.so.?"

KEPT = re.compile(
    r"usr/lib(64)?/(?!valgrind/|binfmt\.d/)"
    r"|usr/bin/python3\.11$"
    r"|usr/share/zoneinfo/(?!right/|posix/)"
    r"|usr/share/ca-certificates/"
    r"|usr/share/doc/[^/]+/copyright$"
    r"|etc/(os-release|debian_version)$"
)
DROPPED = re.compile(
    r"usr/lib/[^/]+/gconv/"  # character sets that Python has itself
    r"|usr/lib/python3\.11/(ensurepip|idlelib|lib2to3|pydoc_data|sqlite3|curses|test|tkinter|turtledemo)/"
    # Modules whose libraries are left out: terminals, databases, NIS, passwords.
    r"|usr/lib/python3\.11/lib-dynload/(_curses|_curses_panel|_crypt|_dbm|_sqlite3|nis|readline|_test\w*|_xx\w*|xx\w*)\."
)

ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/:/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def make(scratch: Path) -> tuple[Tree, Sequence[Package]]:
    """Return the layer's files without bytecode, and the packages they come from. Raises ClickException."""
    packages.require_debian()
    found = packages.download(PACKAGES, scratch)
    made: dict[str, Entry] = {name: entry for package in found for name, entry in packages.files(package) if kept(name)}
    described = [packages.describe(package) for package in found]
    return made | _made(made, described), described


def kept(name: str) -> bool:
    """Report whether a file of a package belongs into the image."""
    return bool(KEPT.match(name)) and not DROPPED.match(name)


def _made(made: Tree, described: Sequence[Package]) -> dict[str, Entry]:
    """Return files that maintainers' scripts would make, and those that scanners read."""
    return {
        **{name: Link(f"usr/{name}") for name in MERGED},
        "usr/bin/python3": Link(PYTHON.rpartition("/")[2]),
        "tmp": Folder(0o1777),
        **{name: File(text.encode()) for name, text in ACCOUNTS.items()},
        CERTIFICATES: File(_authorities(made)),
        "usr/lib/ssl/cert.pem": Link(f"/{CERTIFICATES}"),
        **{f"var/lib/dpkg/status.d/{one.name}": File(one.control.encode()) for one in described},
    }


def _authorities(made: Tree) -> bytes:
    """Return all certificate authorities that Debian trusts, in one file."""
    found = [entry.content for name, entry in sorted(made.items()) if name.endswith(".crt") and isinstance(entry, File)]
    return b"".join(content.rstrip() + b"\n" for content in found)


def compiled(layer: Tree, interpreter: Path) -> dict[str, Entry]:
    """Return the layer with its bytecode; `interpreter` is the folder with the unpacked base. Raises ClickException.

    Compiled files are never checked against their source: that saves a `stat` per import, and they depend on no time.
    """
    with tempfile.TemporaryDirectory(prefix="flotilla-image-") as name:
        folder = Path(name)
        sources = {path: entry for path, entry in layer.items() if path.endswith(".py")}
        tree.write(sources, folder)
        _compile(folder, interpreter)
        return {**layer, **tree.read(folder)}


def _compile(folder: Path, root: Path) -> None:
    loader = next(root.glob(LOADER))
    # One process, and no random order of sets: the same source gives the same bytes.
    command = [loader, "--library-path", loader.parent, root / PYTHON.lstrip("/"), "-m", "compileall", "-qq"]
    options = ["--invalidation-mode", "unchecked-hash", "-s", folder, "-p", "/", folder]
    own = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    run([*command, *options], "Python files of the image could not be compiled", env=own)
