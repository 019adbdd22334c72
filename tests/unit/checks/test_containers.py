"""The switch between containers and processes for the servers of tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.errors import DockerException

from tests.support import containers
from tests.support.containers import SWITCH, contained

IMAGE = "nats:none"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Clear the cache, and hide any engine."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'none'}")
    contained.cache_clear()
    yield
    contained.cache_clear()


@pytest.mark.parametrize("choice", ["auto", "never"])
def test_without_an_engine_there_are_processes(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    monkeypatch.setenv(SWITCH, choice)
    assert not contained(IMAGE)


def test_without_an_engine_always_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "always")
    with pytest.raises(DockerException, match="no Docker engine"):
        contained(IMAGE)


@pytest.mark.parametrize(("choice", "wanted"), [(None, True), ("auto", True), ("always", True), ("never", False)])
def test_with_an_image_there_are_containers(monkeypatch: pytest.MonkeyPatch, choice: str | None, wanted: bool) -> None:
    monkeypatch.setattr(containers, "_have", lambda _: None)
    if choice:
        monkeypatch.setenv(SWITCH, choice)
    else:
        monkeypatch.delenv(SWITCH, raising=False)
    assert contained(IMAGE) is wanted


def test_another_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "sometimes")
    with pytest.raises(ValueError, match="sometimes"):
        contained(IMAGE)
