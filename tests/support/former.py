"""The release before this one: its chart and its image, made of the repository's history.

    before = former()
    before.push(cluster)
    helm.install("install", chart=before.chart, manager__image__tag=before.tag)

The image is built by that release's own code, without Docker, and is kept in the cache folder by its commit.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from flotilla_dev.cluster.processes import run
from flotilla_dev.cluster.state import cache_dir, locked
from flotilla_dev.image import build
from tests.support.nodes import RealCluster

COMMIT = "5d785c751d9d9f13c10500c8c2da13ec1dba8f53"
"""The commit before the subjects of pods changed (ADR 35). There is no release yet: with the first, this is its tag."""

PACKAGES = ("cli", "devcluster", "libs/*", "services/*")
"""Folders of packages in a checkout: that release's code builds its image, in place of ours."""

ROOT = Path(__file__).parents[2]


class Former(msgspec.Struct, frozen=True):
    """The release before this one."""

    folder: Path

    @property
    def chart(self) -> Path:
        """Return the folder of its chart."""
        return self.folder / "chart"

    @property
    def tag(self) -> str:
        """Return the tag of its image on a cluster: both releases may have the same version."""
        return f"before-{COMMIT[:9]}"

    @property
    def reference(self) -> str:
        """Return the name of its image on a cluster."""
        return f"{build.REPOSITORY}:{self.tag}"

    def push(self, cluster: RealCluster) -> None:
        """Put its image into the registry of the nodes."""
        where = f"{cluster.registry.address}/{self.reference}"
        run([cluster.program("crane"), "push", self.folder / "image", where], f"{where} could not be pushed")


def former() -> Former:
    """Return the release before this one, built if it is not cached. Raises AssertionError without the history."""
    kept = cache_dir() / "releases"
    kept.mkdir(parents=True, exist_ok=True)
    made = Former(kept / COMMIT)
    with locked(kept / ".lock"):
        if not made.folder.exists():
            with tempfile.TemporaryDirectory(prefix="former-", dir=kept) as scratch:
                _make(Path(scratch)).rename(made.folder)
    return made


def archive(checkout: Path) -> bytes:
    """Return all files of the release as a tar archive. Raises AssertionError without the history."""
    reply = subprocess.run(["git", "archive", COMMIT], cwd=checkout, capture_output=True, check=False)
    assert not reply.returncode, (
        f"The release before this one is built from commit {COMMIT}, which this clone does not have "
        f"({reply.stderr.decode().strip()}). Get the history with `git fetch --unshallow`, or clone without --depth."
    )
    return reply.stdout


def _make(scratch: Path) -> Path:
    """Return a folder with `chart` and `image` of the release."""
    source, made = scratch / "source", scratch / "made"
    source.mkdir()
    made.mkdir()
    subprocess.run(["tar", "-x", "-C", source], input=archive(ROOT), check=True)
    found = [path.parent for pattern in PACKAGES for path in source.glob(f"{pattern}/pyproject.toml")]
    run(
        [sys.executable, "-m", "flotilla_dev", "image", "build", "--output", made / "image"],
        "the image of the release before this one could not be built",
        cwd=source,
        env={"PYTHONPATH": ":".join(map(str, found))},
    )
    shutil.move(source / "helm" / "flotilla", made / "chart")
    return made
