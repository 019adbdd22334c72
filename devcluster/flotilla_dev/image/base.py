"""The lowest layer: Debian's Python with its libraries, without anything that a service does not run.

It has no shell, no package manager, no compiler. Files for scanners stay: os-release, each package's fields and
licence. Its Python also compiles all layers, because a read-only root file system must contain the bytecode from the
start.

Packages are downloaded with the ordinary apt client and a state of its own, which needs no root and installs nothing.
apt has this machine's sources and keys, and checks signatures and sums.
"""

import io
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from email.parser import Parser
from pathlib import Path

import click
import msgspec

from flotilla_dev.cluster.processes import run
from flotilla_dev.image import tree
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

RELEASE = "12"
"""Release of Debian of the base; `base.PACKAGES` has names of this release."""

MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders that are links into /usr; packages of this release still name some files by them."""


class Package(msgspec.Struct, frozen=True):
    """One binary package, as its control file has it."""

    name: str
    version: str
    architecture: str
    control: str
    """All fields, as scanners read them from /var/lib/dpkg/status.d of the image."""


def require_debian() -> None:
    """Raise ClickException if this machine has no packages of the right release."""
    release = Path("/etc/os-release")
    lines = release.read_text(encoding="utf-8").splitlines() if release.exists() else []
    if not {"ID=debian", f'VERSION_ID="{RELEASE}"'} <= set(lines) or not shutil.which("apt-get"):
        raise click.ClickException(
            f"The image's base is made of Debian {RELEASE}'s packages, by apt-get, and this is another system. "
            "`docker build .` in the checkout makes the same image anywhere."
        )


def download(names: Sequence[str], scratch: Path) -> list[Path]:
    """Download the newest version of each package in this machine's sources. Raises ClickException."""
    for folder in ("lists/partial", "cache/archives/partial", "packages"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    _apt(["update", "-qq"], scratch)
    _apt(["download", "-qq", *names], scratch)
    return sorted((scratch / "packages").glob("*.deb"))


def _apt(arguments: Sequence[str], scratch: Path) -> None:
    private = {
        "Dir::State": scratch,
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "APT::Sandbox::User": "root",  # the scratch folder is ours alone
    }
    options = [part for name, value in private.items() for part in ("-o", f"{name}={value}")]
    problem = f"`apt-get {' '.join(arguments)}` failed; are Debian's sources reachable?"
    run(["apt-get", *options, *arguments], problem, cwd=scratch / "packages", env={"LC_ALL": "C.UTF-8"})


def describe(package: Path) -> Package:
    """Return a package's own description."""
    control = _dpkg_deb("--field", package).decode()
    fields = Parser().parsestr(control)
    return Package(fields["Package"], fields["Version"], fields["Architecture"], control)


def files(package: Path) -> Iterator[tuple[str, File | Link]]:
    """Yield the files of a package, by their path in a system with a merged /usr."""
    with tarfile.open(fileobj=io.BytesIO(_dpkg_deb("--fsys-tarfile", package))) as archive:
        for member in archive:
            if member.issym():
                yield merged(member.name), Link(member.linkname)
            elif member.isfile() or member.islnk():
                content = archive.extractfile(member)
                assert content is not None, "a file, or a second name of one"
                yield merged(member.name), File(content.read(), executable=bool(member.mode & 0o100))


def merged(name: str) -> str:
    """Return where a file of a package is when /bin, /sbin and /lib are links into /usr."""
    name = name.removeprefix("./")
    return f"usr/{name}" if name.partition("/")[0] in MERGED else name


def _dpkg_deb(option: str, package: Path) -> bytes:
    return subprocess.run(["dpkg-deb", option, package], capture_output=True, check=True).stdout


def make(scratch: Path) -> tuple[Tree, Sequence[Package]]:
    """Return the layer's files without bytecode, and the packages they come from. Raises ClickException."""
    require_debian()
    found = download(PACKAGES, scratch)
    made: dict[str, Entry] = {name: entry for package in found for name, entry in files(package) if is_kept(name)}
    described = [describe(package) for package in found]
    return made | _made(made, described), described


def is_kept(name: str) -> bool:
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
