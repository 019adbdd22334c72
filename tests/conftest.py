"""For all layers: nothing leads to the user's own clusters, assertions of shared contracts are explained like those of
test files, sockets have short paths, and no generated example fails because the machine is busy."""

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
    """A folder whose name leaves room for the path of a unix socket: the kernel takes 107 characters, and those of
    `tmp_path` may be half of them."""
    folder = Path(tempfile.mkdtemp(prefix="f-"))
    yield folder
    shutil.rmtree(folder)
