"""Reads only files that only root, or the user that runs the agent, can have written.

The agent runs as root, so anyone who may change its programs or registry logins is root on the node. A file that others
may write is not used; nor is a program that others may replace.
"""

import os
import stat
from pathlib import Path

OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(Exception):
    """The file is not used; the text gives the reason."""


def read(path: Path, limit: int) -> bytes:
    """Return the content of a file of at most `limit` bytes.

    Raises OSError when it cannot be read (FileNotFoundError: it does not exist), Untrusted when others may write it, or
    it is too large or not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # never block on a pipe
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise Untrusted(f"{path} is not a file")
        _check(path, state)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise Untrusted(f"{path} has more than {limit} bytes")
    return content


def program(path: Path) -> Path:
    """Return the program's real path.

    Other users cannot change it before it is executed, because they may write neither it nor a folder on the way to it.
    Raises OSError when it cannot be read (FileNotFoundError: it does not exist), Untrusted when others may replace it,
    or it is no program.
    """
    real = path.resolve(strict=True)
    state = real.stat()
    if not stat.S_ISREG(state.st_mode) or not os.access(real, os.X_OK):
        raise Untrusted(f"{path} is not a program")
    _check(real, state)
    for folder in real.parents:
        _check(folder, folder.stat())
    return real


def _check(path: Path, state: os.stat_result) -> None:
    if state.st_uid not in (0, os.geteuid()):
        raise Untrusted(f"{path} belongs to user {state.st_uid}, not to root")
    writable = state.st_mode & OTHERS
    if state.st_gid in (0, os.getegid()):
        writable &= ~stat.S_IWGRP
    if stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX:
        return  # as in /tmp: others cannot replace our files there
    if writable:
        raise Untrusted(f"{path} can be written by others")
