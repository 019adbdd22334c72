"""Fixtures shared by the tests of the local cluster."""

from pathlib import Path

import pytest

from flotilla_cli.local import Ports
from flotilla_dev.cluster.components import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.fixture
def ports() -> Ports:
    return Ports(6443, 2379, 2380)
