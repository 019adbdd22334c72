"""`kubectl flotilla` from the archive that krew would unpack, under a real kubectl."""

import hashlib
import os
import platform
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.support.cluster import programs

ROOT = Path(__file__).parents[3]
MANIFEST = ROOT / "integrations/krew/flotilla.yaml"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


class Installed(NamedTuple):
    """The files that krew leaves on a machine."""

    manifest: dict
    archive: Path
    folder: Path
    path: str


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the archive for this machine and this Python, unpack it, and link to it as krew does."""
    out, store, links = (tmp_path_factory.mktemp(name) for name in ("out", "store", "bin"))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    build = [sys.executable, str(ROOT / "integrations/krew/build.py"), "--uri", "https://example.com/v0"]
    subprocess.run([*build, "--out", out, "--platform", f"linux/{MACHINE}", "--python", python], check=True)
    archive = out / f"kubectl-flotilla-linux-{MACHINE}.tar.gz"
    with tarfile.open(archive) as tar:
        tar.extractall(store)
    (links / "kubectl-flotilla").symlink_to(store / "kubectl-flotilla")
    (links / "kubectl_complete-flotilla").symlink_to(store / "kubectl_complete-flotilla")
    (links / "python3").symlink_to(sys.executable)
    manifest = yaml.safe_load((out / "flotilla.yaml").read_text(encoding="utf-8"))
    return Installed(manifest, archive, store, f"{links}:/usr/bin:/bin")


def kubectl(installed: Installed, *arguments: str) -> str:
    env = {**os.environ, "PATH": installed.path}
    line = [str(programs()("kubectl")), *arguments]
    return subprocess.run(line, env=env, check=True, capture_output=True, text=True, timeout=60).stdout


def test_kubectl_runs_the_plugin_and_completes_it(installed: Installed):
    assert kubectl(installed, "flotilla", "--version") == "kubectl flotilla, version 0.1.0\n"
    assert kubectl(installed, "flotilla", "plan", "--help").startswith("Usage: kubectl flotilla plan ")
    assert kubectl(installed, "__complete", "flotilla", "get", "cl").splitlines()[:2] == ["cloneset", "clone"]
    assert "kubectl-flotilla" in kubectl(installed, "plugin", "list")


def test_the_archive_has_all_that_the_environment_has(installed: Installed):
    """It contains the services, whose planners `plan` and `replay` use, and needs nothing from elsewhere."""
    found = kubectl(installed, "flotilla", "run", "--help")
    assert "cloneset" in found
    site = installed.folder / "site"
    assert (site / "any/flotilla_cli").is_dir()
    assert not list(site.glob("cp*/flotilla*"))
    assert list(site.glob("cp*/aiohttp"))


def test_the_manifest_is_one_that_krew_takes(installed: Installed):
    """As krew's documentation requires."""
    for manifest in (yaml.safe_load(MANIFEST.read_text(encoding="utf-8")), installed.manifest):
        assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
        assert manifest["kind"] == "Plugin"
        assert manifest["metadata"] == {"name": MANIFEST.stem}
        spec = manifest["spec"]
        assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
        assert 0 < len(spec["shortDescription"]) <= 60
        assert spec["description"]
        for one in spec["platforms"]:
            assert one["selector"]["matchLabels"].keys() == {"os", "arch"}
            assert (installed.folder / one["bin"]).stat().st_mode & 0o111
    (here,) = installed.manifest["spec"]["platforms"]
    assert here["sha256"] == hashlib.sha256(installed.archive.read_bytes()).hexdigest()
    assert here["uri"] == f"https://example.com/v0/{installed.archive.name}"
