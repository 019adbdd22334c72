"""Control planes of a folder end with its last test: one that lives on costs a tenth of a core until the run ends."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
REAL = [path for layer in ("integration", "cluster") for path in sorted((TESTS / layer).rglob("conftest.py"))]


def test_there_are_folders_with_fixtures() -> None:
    assert len(REAL) > 8


@pytest.mark.parametrize("conftest", [path for path in REAL if 'scope="package"' in path.read_text()], ids=str)
def test_a_folder_with_fixtures_of_a_package_is_one(conftest: Path) -> None:
    """Elsewhere pytest takes the scope for the session's."""
    assert (conftest.parent / "__init__.py").exists()


@pytest.mark.parametrize("conftest", REAL, ids=str)
def test_no_async_fixture_lasts_for_the_session(conftest: Path) -> None:
    assert not re.search(r'asyncio\.fixture\(scope="session"', conftest.read_text())
