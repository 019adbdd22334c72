"""The identity of a process, which outlives the command that started it.

A pid can be reused; a pid with its start time and boot cannot.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec


class Process(msgspec.Struct, frozen=True):
    """One started program. `started` is in clock ticks since boot `boot`: together with the pid it is unique."""

    name: str
    pid: int
    started: int
    boot: str
    argv: list[str]
    log: str


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it does not run or is a zombie.

    A killed program of many threads is a zombie as soon as its first thread is gone; until the last one is, it holds
    its ports and files.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
    threads, started = int(fields[16]), int(fields[18])
    return None if state in "ZX" and threads <= 1 else started


def is_alive(process: Process) -> bool:
    """Report whether exactly this process still runs; reaps it if it is our child and has ended."""
    reap(process.pid)
    return process.boot == boot_id() and start_ticks(process.pid) == process.started


def reap(pid: int) -> None:
    """Collect the exit status of an ended child; another process's children are left to it."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def bound_command(argv: Sequence[str], signal_name: str = "KILL") -> list[str]:
    """Return the command line of a program that the kernel sends the signal when its parent ends."""
    return ["setpriv", "--pdeathsig", signal_name, "--", *argv]
