"""The files of a layer in memory, and archives that depend on nothing else."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec

EPOCH = 1704067200
"""The time of every file: 2024-01-01. No file of the image is compared by its time."""


class File(msgspec.Struct, frozen=True):
    """A regular file."""

    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        """Permissions: root owns the file, all may read it, and no service is root."""
        return 0o755 if self.executable else 0o644


class Link(msgspec.Struct, frozen=True):
    """A symbolic link."""

    target: str


class Folder(msgspec.Struct, frozen=True):
    """A folder with a mode of its own, such as /tmp."""

    mode: int


Entry = File | Link | Folder
Tree = Mapping[str, Entry]
"""The entries by path, without the leading slash. Folders of files are implied."""


def read(folder: Path) -> dict[str, Entry]:
    """Return the files below a folder."""
    found: dict[str, Entry] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = Link(str(path.readlink()))
        elif path.is_file():
            found[name] = File(path.read_bytes(), executable=bool(path.stat().st_mode & 0o100))
    return found


def under(prefix: str, tree: Tree) -> dict[str, Entry]:
    """Return the same files below a prefix."""
    return {f"{prefix}/{name}": entry for name, entry in tree.items()}


def archive(tree: Tree) -> bytes:
    """Return the tar archive of a layer: sorted, owned by root, with one time for all."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, entry in sorted(_with_folders(tree)):
            info = tarfile.TarInfo(name)
            info.mtime = EPOCH
            match entry:
                case Folder(mode):
                    info.type, info.mode = tarfile.DIRTYPE, mode
                    made.addfile(info)
                case Link(target):
                    info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
                    made.addfile(info)
                case File(content):
                    info.size, info.mode = len(content), entry.mode
                    made.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _with_folders(tree: Tree) -> Iterator[tuple[str, Entry]]:
    implied = {str(parent) for name in tree for parent in PurePosixPath(name).parents} - {"."}
    yield from ((name, Folder(0o755)) for name in implied if name not in tree)
    yield from tree.items()


def opened(content: bytes) -> Tree:
    """Return the files in an archive that `archive` made."""
    found: dict[str, Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as made:
        for member in made:
            if member.issym():
                found[member.name] = Link(member.linkname)
            elif file := made.extractfile(member):
                found[member.name] = File(file.read(), executable=bool(member.mode & 0o100))
            else:
                found[member.name] = Folder(member.mode)
    return found


def write(tree: Tree, folder: Path) -> None:
    """Write a layer to the disk, as the current user. Parents come before their files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, entry in sorted(_with_folders(tree)):
        path = folder / name
        match entry:
            case Folder(mode):
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(mode)
            case Link(target):
                path.symlink_to(target)
            case File(content):
                path.write_bytes(content)
                path.chmod(entry.mode)
