"""Certificate files that change all at once.

Every file is a link through `..data`, itself a link to a directory that is written whole before the link is swapped: a
reader never meets the certificate of one generation with the key of another. It is how the kubelet mounts Secrets.
"""

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

_LINK = "..data"


def read_files(directory: Path, names: Iterable[str]) -> dict[str, bytes] | None:
    """The named files, or None if any is missing."""
    try:
        return {name: (directory / name).read_bytes() for name in names}
    except FileNotFoundError:
        return None


def write_files(directory: Path, files: Mapping[str, bytes]) -> bool:
    """Make the directory hold these files; whether anything changed. Raises OSError."""
    if read_files(directory, files) == dict(files):
        return False
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = hashlib.sha256(b"\0".join(files[name] for name in sorted(files))).hexdigest()
    generation = directory / f"..{digest[:16]}"
    shutil.rmtree(generation, ignore_errors=True)  # left behind by a process that died while it wrote
    generation.mkdir(mode=0o700)
    for name, content in files.items():
        path = generation / name
        path.touch(mode=0o600)
        path.write_bytes(content)
    _swap(directory / _LINK, generation.name)
    for name in files:
        if not (directory / name).is_symlink():
            _swap(directory / name, f"{_LINK}/{name}")
    for old in directory.glob("..*"):
        if old.is_dir() and not old.is_symlink() and old != generation:
            shutil.rmtree(old)
    return True


def _swap(link: Path, target: str) -> None:
    """Point the link at the target in one step, whatever stands there."""
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
