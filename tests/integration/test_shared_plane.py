"""The control plane that tests share: one for all guests, started by the first, ended by the last."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flotilla_dev.cluster.processes import marked
from tests.support.cluster import eventually

ROOT = Path(__file__).parents[2]
GUEST = """
import sys
from pathlib import Path
from tests.support.shared_plane import shared_plane
with shared_plane(Path(sys.argv[1]), ["watcher"]) as flotilla:
    for line in sys.stdin:
        print(flotilla.cluster.kubectl("get", "namespace", "default", "-o", "jsonpath={.metadata.uid}"), flush=True)
"""


@contextmanager
def guest(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", GUEST, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield process
        process.kill()


def plane_of(process: subprocess.Popen[str]) -> str:
    """Return which control plane answers the guest."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


def left(folder: Path) -> list[str]:
    """Return the running programs of the shared plane."""
    folders = [folder, *folder.glob("plane-*")]
    return [process.name for one in folders for process in marked(one)]


@pytest.mark.timeout(300)
async def test_guests_share_a_plane_that_ends_with_the_last_of_them_even_if_they_are_killed(tmp_path: Path):
    with guest(tmp_path) as first, guest(tmp_path) as second:
        plane = plane_of(first)
        assert plane
        assert plane_of(second) == plane
        description = json.loads((tmp_path / "plane.json").read_text())
        assert set(description["members"]) == {"watcher"}
        first.kill()
        assert plane_of(second) == plane
        assert "kube-apiserver" in left(tmp_path)
    await eventually(lambda: not left(tmp_path))
    with guest(tmp_path) as late:
        assert plane_of(late) not in ("", plane)
        assert late.stdin is not None
        late.stdin.close()
        assert late.wait(60) == 0
        assert not left(tmp_path)
