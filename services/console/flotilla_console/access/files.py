"""Files with secrets that the settings name."""

from pathlib import Path


class FileError(Exception):
    """A file that the settings name and that cannot be used."""


def lines_of(file: str, title: str) -> tuple[bytes, ...]:
    """Return the words of a file with at least one, one a line as a rule. Raises FileError."""
    try:
        words = tuple(Path(file).read_bytes().split())
    except OSError as error:
        raise FileError(f"{title} {file}: {error.strerror}") from error
    if not words:
        raise FileError(f"{title} {file} is empty")
    return words
