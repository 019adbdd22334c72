"""Installs the locked dependencies and our own packages with uv, as wheels.

Nothing depends on this machine: neither on its interpreter's version, nor on its paths.
"""

import os
import re
import tomllib
from collections.abc import Collection, Sequence
from configparser import ConfigParser
from pathlib import Path

import click

from flotilla_cli.plugins import LOCAL_PACKAGE
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.processes import run
from flotilla_dev.cluster.provision import machine
from flotilla_dev.cluster.state import cache_dir
from flotilla_dev.image import base, tree
from flotilla_dev.image.tree import Entry, File, Tree

SITE = "usr/local/lib/python3.11/dist-packages"
PROGRAMS = "usr/local/bin"
SCRIPT = """\
#!{python}
import sys

from {module} import {function}

sys.exit({function}())
"""

LOCKED = ("export", "--locked", "--no-dev", "--quiet")
"""Command that exports the lock file without tests and linters."""

LOCAL_PACKAGES = (LOCAL_PACKAGE,)
"""Packages of the workspace that no image of services contains."""

UNBUILT = "nkeys"
"""The dependency without a wheel on the index: pure Python, its source pinned by its sum."""

BUILDER = "setuptools==84.2.1"
"""The package that builds it."""

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
GLIBC = "2_36"  # of the base layer's Debian

NOT_SHIPPED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files of *.dist-info with paths of this machine, or of an installer that the image lacks."""

UNUSED = re.compile(
    r"^(bin/|\.)|\.pyc$"
    r"|(^|/)(tests?|testdata)/"
    r"|\.(c|cpp|h|hash|pyi|pxd|pyx|pxi)$"  # what extensions were compiled from
)
"""Files of packages that are never run; programs are written by `scripts`."""


def checkout() -> Path:
    """Return the checkout that this code runs from. Raises ClickException if it was installed from wheels."""
    root = Path(__file__).parents[3]
    if not (root / "uv.lock").exists():
        raise click.ClickException("The image is built from a checkout; this flotilla was installed without one.")
    return root


def locked() -> str:
    """Return the dependencies with their sums, as requirements."""
    chosen = [word for name in service_packages() for word in ("--package", name)]
    return uv(*LOCKED, *chosen, "--no-emit-workspace", "--no-annotate", "--no-header")


def exported() -> str:
    """Return the lock file without tests and linters, as a CycloneDX document."""
    return uv(*LOCKED, "--all-packages", "--format", "cyclonedx1.5", "--preview-features", "sbom-export")


def dependencies(requirements: str, scratch: Path) -> Tree:
    """Return the files of the locked dependencies."""
    wanted, pins = scratch / "requirements.txt", scratch / "builders.txt"
    wanted.write_text(requirements, encoding="utf-8")
    pins.write_text(f"{BUILDER}\n", encoding="utf-8")
    only_wheels = ("--only-binary", ":all:", "--no-binary", UNBUILT, "--build-constraints", str(pins))
    return _install(scratch / "dependencies", *only_wheels, "--require-hashes", "--requirements", str(wanted))


def own(scratch: Path, names: Sequence[str]) -> Tree:
    """Return the files of these packages of ours, with a program for each of their entry points."""
    built = scratch / "wheels"
    if not built.exists():
        uv("build", "--quiet", "--wheel", "--all-packages", "--out-dir", str(built))
    wheels = [str(next(built.glob(f"{name.replace('-', '_')}-*.whl"))) for name in sorted(names)]
    return _install(scratch / "own" / names[0], "--no-cache", "--no-index", *wheels)


def _install(folder: Path, *what: str) -> dict[str, Entry]:
    platform = f"{ARCHITECTURES[machine()]}-manylinux_{GLIBC}"
    aim = ("--target", str(folder), "--python-platform", platform, "--python-version", "3.11")
    uv("pip", "install", "--quiet", "--no-deps", "--link-mode", "copy", *aim, *what)
    found = {name: entry for name, entry in tree.read(folder).items() if shipped(name)}
    return tree.under(SITE, found) | scripts(found)


def shipped(name: str) -> bool:
    """Report whether an installed file belongs into the image."""
    return not UNUSED.search(name) and name.rpartition("/")[2] not in NOT_SHIPPED


def scripts(installed: Tree) -> dict[str, Entry]:
    """Return a program for each of our entry points; other packages' programs are not needed."""
    found: dict[str, Entry] = {}
    for name, entry in installed.items():
        if name.startswith("flotilla_") and name.endswith(".dist-info/entry_points.txt") and isinstance(entry, File):
            parser = ConfigParser()
            parser.read_string(entry.content.decode())
            for program, where in parser["console_scripts"].items():
                module, _, function = where.partition(":")
                text = SCRIPT.format(python=base.PYTHON, module=module, function=function)
                found[f"{PROGRAMS}/{program}"] = File(text.encode(), executable=True)
    return found


def service_packages() -> list[str]:
    """Return the names of the packages of ours that the image of the services has."""
    return [name for name in packages() if name not in LOCAL_PACKAGES]


def packages() -> dict[str, Path]:
    """Return the folders of all packages of the workspace, by name."""
    root = checkout()
    patterns = _settings(root)["tool"]["uv"]["workspace"]["members"]
    return {_settings(folder)["project"]["name"]: folder for each in patterns for folder in sorted(root.glob(each))}


def _settings(folder: Path) -> Json:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def sources(names: Collection[str]) -> Sequence[bytes]:
    """Return names and contents of the files that these packages are built from."""
    root, folders = checkout(), packages()
    files = {path for name in names for path in folders[name].rglob("*") if path.is_file()}
    found = [path for path in sorted(files) if "__pycache__" not in path.parts]
    return [part for path in found for part in (path.relative_to(root).as_posix().encode(), path.read_bytes())]


def uv(*arguments: str) -> str:
    """Run the checkout's uv, and return its output. Raises ClickException."""
    root = checkout()
    pin = (root / "scripts" / "uv.txt").read_text(encoding="utf-8")
    version = next(line.split()[0].removeprefix("uv==") for line in pin.splitlines() if line.startswith("uv=="))
    program = cache_dir() / f"tools-{version}" / "bin" / "uv"
    trust = {"UV_SYSTEM_CERTS": "true"} if Path("/etc/ssl/certs/ca-certificates.crt").exists() else {}
    problem = f"`uv {' '.join(arguments[:2])}` failed (scripts/setup installs uv)"
    return run([program, *arguments], problem, cwd=root, env={**trust, **os.environ, "UV_PYTHON_DOWNLOADS": "never"})
