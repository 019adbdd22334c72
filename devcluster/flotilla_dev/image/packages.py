"""Downloads Debian's packages with the ordinary apt client and a state of its own; needs no root, installs nothing.

apt has this machine's sources and keys, and checks signatures and sums.
"""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from email.parser import Parser
from pathlib import Path

import click
import msgspec

from flotilla_dev.cluster.processes import run
from flotilla_dev.image.tree import File, Link

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
