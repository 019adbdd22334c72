"""Archives of layers depend on their files alone."""

import io
import tarfile
from pathlib import Path

import pytest

from flotilla_dev.image import tree
from flotilla_dev.image.tree import EPOCH, File, Folder, Link

FILES: tree.Tree = {
    "usr/bin/program": File(b"#!", executable=True),
    "usr/lib/a": File(b"text"),
    "lib": Link("usr/lib"),
    "tmp": Folder(0o1777),
}


def members(files: tree.Tree) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(tree.archive(files))) as made:
        return made.getmembers()


def test_the_order_of_files_does_not_count() -> None:
    assert tree.archive(FILES) == tree.archive(dict(reversed(FILES.items())))
    assert tree.archive(FILES) != tree.archive({**FILES, "usr/lib/a": File(b"other")})


def test_all_is_root_s_and_of_one_time() -> None:
    assert {(one.uid, one.gid, one.uname, one.mtime) for one in members(FILES)} == {(0, 0, "", EPOCH)}


def test_folders_come_before_what_is_in_them() -> None:
    assert [one.name for one in members(FILES)] == [
        *("lib", "tmp", "usr", "usr/bin", "usr/bin/program", "usr/lib", "usr/lib/a")
    ]


@pytest.mark.parametrize(("name", "mode"), [("usr/bin/program", 0o755), ("usr/lib/a", 0o644), ("tmp", 0o1777)])
def test_nobody_but_root_may_write_files(name: str, mode: int) -> None:
    assert {one.name: one.mode for one in members(FILES)}[name] == mode


def test_an_archive_opens_again() -> None:
    opened = tree.opened(tree.archive(FILES))
    assert {name: opened[name] for name in FILES} == FILES
    assert tree.archive(opened) == tree.archive(FILES)


def test_a_tree_is_written_and_read(tmp_path: Path) -> None:
    tree.write(FILES, tmp_path / "root")
    assert (tmp_path / "root" / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert tree.read(tmp_path / "root") == {name: entry for name, entry in FILES.items() if name != "tmp"}


def test_a_prefix() -> None:
    assert set(tree.under("site", {"a/b.py": File(b"")})) == {"site/a/b.py"}
