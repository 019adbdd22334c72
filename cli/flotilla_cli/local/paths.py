"""The folders of local clusters and of `flotilla run`, and a way to write private files."""

import os
from pathlib import Path


def default_state_dir() -> Path:
    """Return the state folder of `flotilla up`: FLOTILLA_STATE, or `flotilla/up` in the user's state folder."""
    own = os.environ.get("FLOTILLA_STATE")
    return Path(own) if own else user_state_dir() / "up"


def notes_dir() -> Path:
    """Return the folder in which every `flotilla run` with a bus of its own leaves a note on how to reach it."""
    return user_state_dir() / "runs"


def user_state_dir() -> Path:
    """Return our folder among the user's state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "flotilla"


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch(mode=0o600)
    partial.write_bytes(content.encode() if isinstance(content, str) else content)
    partial.replace(path)
