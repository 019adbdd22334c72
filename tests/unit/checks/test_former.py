"""The release before this one comes from the repository's history."""

import subprocess
from pathlib import Path

import pytest

from tests.support.former import COMMIT, archive


def test_a_clone_without_the_history_says_what_to_do(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    with pytest.raises(AssertionError, match=rf"{COMMIT}.*`git fetch --unshallow`"):
        archive(tmp_path)
