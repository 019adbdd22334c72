"""The lowest layer: Debian's Python with the libraries that it needs, and nothing that a service does not run.

No shell, no package manager, no compiler. What scanners want to know stays: os-release, each package's fields and
licence.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from flotilla_cli.image import packages
from flotilla_cli.image.packages import MERGED, Package
from flotilla_cli.image.tree import Entry, File, Folder, Link, Tree

USER = 65532
"""Who services run as: the customary `nonroot` of images without a distribution."""

PYTHON = "/usr/bin/python3.11"
PACKAGES = (
    *("base-files", "ca-certificates", "tzdata"),
    *("libc6", "libgcc-s1", "zlib1g", "libexpat1", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libuuid1"),
    "libstdc++6",  # of re2, which is C++
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"),
)

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
    """The layer's files without bytecode, and the packages they come from. Raises ImageError."""
    packages.require_debian()
    found = packages.download(PACKAGES, scratch)
    tree: dict[str, Entry] = {name: entry for package in found for name, entry in packages.files(package) if kept(name)}
    described = [packages.describe(package) for package in found]
    return tree | _made(tree, described), described


def kept(name: str) -> bool:
    """Whether a file of a package comes into the image."""
    return bool(KEPT.match(name)) and not DROPPED.match(name)


def _made(tree: Tree, described: Sequence[Package]) -> dict[str, Entry]:
    """What maintainers' scripts would make, and what tells scanners where all this comes from."""
    return {
        **{name: Link(f"usr/{name}") for name in MERGED},
        "usr/bin/python3": Link(PYTHON.rpartition("/")[2]),
        "tmp": Folder(0o1777),
        **{name: File(text.encode()) for name, text in ACCOUNTS.items()},
        CERTIFICATES: File(_authorities(tree)),
        "usr/lib/ssl/cert.pem": Link(f"/{CERTIFICATES}"),
        **{f"var/lib/dpkg/status.d/{one.name}": File(one.control.encode()) for one in described},
    }


def _authorities(tree: Tree) -> bytes:
    """All certificate authorities that Debian trusts, in one file."""
    found = [entry.content for name, entry in sorted(tree.items()) if name.endswith(".crt") and isinstance(entry, File)]
    return b"".join(content.rstrip() + b"\n" for content in found)
