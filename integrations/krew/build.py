#!/usr/bin/env python3
"""Builds the archives of `kubectl flotilla` for krew, and a manifest with their checksums.

    .venv/bin/python integrations/krew/build.py --uri https://example.com/flotilla/v0.1.0

An archive has a launcher and all packages of Flotilla's lock file, for each Python: `site/any` has the packages that
fit all, `site/cp312` those that were compiled for Python 3.12. Packages come from the package index, by uv, as wheels
for the platform of the archive, which may be another than this one.
"""

import argparse
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    ("linux", "amd64"): "x86_64-unknown-linux-gnu",
    ("linux", "arm64"): "aarch64-unknown-linux-gnu",
    ("darwin", "arm64"): "aarch64-apple-darwin",
}
"""Platforms by krew's names, with uv's."""
LAUNCHER, COMPLETION = "kubectl-flotilla", "kubectl_complete-flotilla"
SOURCE_ONLY = "nkeys"
"""The one package without wheels. It is pure Python."""


def main(arguments: Sequence[str]) -> None:
    """Build the requested archives, and print their paths."""
    parser = argparse.ArgumentParser(description="Build the krew archives of kubectl flotilla.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--uri", required=True, help="the folder from which users will download the archives")
    parser.add_argument("--platform", action="append", metavar="OS/ARCH", help="default: all")
    parser.add_argument("--python", action="append", metavar="X.Y", help="default: all that Flotilla runs on")
    chosen = parser.parse_args(arguments)
    wanted = chosen.platform or ["/".join(platform) for platform in PLATFORMS]
    chosen.out.mkdir(parents=True, exist_ok=True)
    manifest = yaml.safe_load((HERE / "flotilla.yaml").read_text(encoding="utf-8"))
    built = {name: archive(name, chosen.python or PYTHONS, chosen.out) for name in wanted}
    filled = chosen.out / "flotilla.yaml"
    filled.write_text(yaml.safe_dump(fill(manifest, built, chosen.uri), sort_keys=False), encoding="utf-8")
    for path in (*built.values(), filled):
        print(path)


def archive(platform: str, pythons: Sequence[str], out: Path) -> Path:
    """Build and return the archive for a platform such as linux/amd64."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "plugin"
        site = folder / "site"
        wheels = _wheels(Path(temporary))
        for python in pythons:
            _install(site, python, PLATFORMS[_pair(platform)], wheels)
        _share(site)
        shutil.copy2(ROOT / "LICENSE", folder)
        for name in (LAUNCHER, COMPLETION):
            shutil.copy2(HERE / LAUNCHER, folder / name)
        path = out / f"kubectl-flotilla-{platform.replace('/', '-')}.tar.gz"
        with tarfile.open(path, "w:gz", compresslevel=6) as tar:
            for entry in sorted(folder.iterdir()):
                tar.add(entry, entry.name, filter=_nobodys)
        return path


def fill(manifest: dict[str, Any], built: dict[str, Path], uri: str) -> dict[str, Any]:
    """Return the manifest with the addresses and checksums of these archives, and without other platforms."""
    platforms: list[dict[str, Any]] = []
    for entry in manifest["spec"]["platforms"]:
        labels = entry["selector"]["matchLabels"]
        path = built.get(f"{labels['os']}/{labels['arch']}")
        if path:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            platforms.append({**entry, "uri": f"{uri.rstrip('/')}/{path.name}", "sha256": digest})
    return {**manifest, "spec": {**manifest["spec"], "platforms": platforms}}


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _pair(platform: str) -> tuple[str, str]:
    system, _, machine = platform.partition("/")
    return system, machine


def _wheels(folder: Path) -> Path:
    """Build our own packages as wheels, and the list of all others with their checksums."""
    requirements = str(folder / "requirements.txt")
    _uv("export", "--frozen", "--no-dev", "--all-packages", "--no-emit-workspace", "--no-header", "-o", requirements)
    _uv("build", "--wheel", "--all-packages", "--out-dir", str(folder / "wheels"))
    return folder


def _install(site: Path, python: str, platform: str, wheels: Path) -> None:
    target = ("--target", str(site / f"cp{python.replace('.', '')}"), "--no-deps", "--python", sys.executable)
    foreign = ("--python-version", python, "--python-platform", platform)
    sources = ("--only-binary", ":all:", "--no-binary", SOURCE_ONLY, "--require-hashes")
    _uv("pip", "install", *target, *foreign, *sources, "-r", str(wheels / "requirements.txt"))
    _uv("pip", "install", *target, *foreign, "--no-index", *map(str, sorted((wheels / "wheels").glob("*.whl"))))


def _share(site: Path) -> None:
    """Move packages that fit every Python into `any`, once."""
    for folder in sorted(site.glob("cp*")):
        for info in sorted(folder.glob("*.dist-info")):
            lines = (info / "WHEEL").read_text(encoding="utf-8").splitlines()
            tags = [line for line in lines if line.startswith("Tag:")]
            if all("-none-any" in tag or "-abi3-" in tag for tag in tags):
                _move(info, folder, site / "any")
        shutil.rmtree(folder / "bin", ignore_errors=True)
        for left in sorted((one for one in folder.rglob("*") if one.is_dir()), reverse=True):
            with contextlib.suppress(OSError):  # not empty
                left.rmdir()


def _move(info: Path, folder: Path, shared: Path) -> None:
    for line in (info / "RECORD").read_text(encoding="utf-8").splitlines():
        name = line.rsplit(",", 2)[0].strip('"')
        source, target = folder / name, shared / name
        if target.exists():  # a package built for an older Python fits newer ones, not the other way round
            source.unlink(missing_ok=True)
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)


def _uv(*arguments: str) -> None:
    version = next(
        line.split()[0].removeprefix("uv==")
        for line in (ROOT / "scripts/uv.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("uv==")
    )
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = os.environ.get("FLOTILLA_CACHE") or Path(caches, "flotilla")
    environment = {"UV_SYSTEM_CERTS": "true", "UV_PYTHON_DOWNLOADS": "never", **os.environ}
    program = Path(cache) / f"tools-{version}" / "bin" / "uv"
    subprocess.run([program, *arguments, "--quiet"], check=True, cwd=ROOT, env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
