"""Layers are made once, and do not pile up."""

from pathlib import Path

import pytest

from flotilla_dev.image import build, oci
from flotilla_dev.image.build import BuiltLayer
from flotilla_dev.image.tree import File


class Maker:
    """Makes a layer, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> BuiltLayer:
        self.calls += 1
        return BuiltLayer(oci.Layer.of("x", {"a": File(str(self.calls).encode())}))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLOTILLA_CACHE", str(tmp_path))
    return tmp_path / "image"


def test_a_layer_is_made_once() -> None:
    make = Maker()
    assert build.cached("base", "key", make) == build.cached("base", "key", make)
    assert make.calls == 1


def test_another_key_or_a_wish_makes_it_anew() -> None:
    make = Maker()
    first = build.cached("base", "key", make)
    assert build.cached("base", "other", make) != first
    assert build.cached("base", "key", make, refresh=True) != first
    assert make.calls == 3


def test_of_each_layer_some_stay(folder: Path) -> None:
    make = Maker()
    build.cached("base", "key", make)
    for number in range(build.KEPT + 3):
        build.cached("own", str(number), make)
    assert len(list(folder.glob("own-*.msgpack"))) == build.KEPT
    assert len(list(folder.glob("base-*.msgpack"))) == 1


def test_a_build_that_fails_leaves_nothing(folder: Path) -> None:
    def fail() -> BuiltLayer:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        build.cached("base", "key", fail)
    assert [path.name for path in folder.iterdir()] == [".lock"]


def test_what_a_key_is_made_of_is_not_run_together() -> None:
    assert build.cache_key(b"a", b"bc") != build.cache_key(b"ab", b"c")
