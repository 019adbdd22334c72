"""The protection log (deletionprotection.md §4): one JSON line per refused deletion."""

from collections.abc import Callable
from pathlib import Path

import structlog

_log = structlog.get_logger()


def recorder(directory: str) -> Callable[[bytes], None]:
    """Appends lines to protection.log in the directory, or writes them to the log if none is given. Raises OSError when
    the directory cannot be made."""
    if not directory:
        return lambda line: _log.info("deletion refused", record=line.decode())
    path = Path(directory) / "protection.log"
    path.parent.mkdir(parents=True, exist_ok=True)

    def append(line: bytes) -> None:
        with path.open("ab") as file:
            file.write(line + b"\n")

    return append
