"""Settings of all layers of tests.

The environment leads to no cluster of the user, assertions of shared contracts are rewritten like those of test files,
sockets have short paths, and no generated example fails because the machine is busy.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import surroundings

surroundings.enter()  # before test files are imported, which may read the environment
pytest.register_assert_rewrite("tests.simulation.contract")
settings.register_profile("flotilla", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("flotilla")


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Yield a folder with a path short enough for a unix socket.

    The kernel allows 107 characters, and `tmp_path` may use half of them.
    """
    folder = Path(tempfile.mkdtemp(prefix="f-"))
    yield folder
    shutil.rmtree(folder)
