"""Runs a program of Flotilla with a wall clock that a test can set while the program works.

    python -m tests.support.set_clock FILE MODULE ARGUMENT…

The file contains the clock's error in seconds, and is read at each reading of the clock. It affects `SystemClock.now`,
on which all decisions and writes of Flotilla are based, and `time.time` with `time.time_ns`, which libraries use. It
does not affect the monotonic clock, as on every machine whose clock is set, nor other processes and files: containerd,
the kubelet, the apiserver. (The times of log lines stay right, too, which helps reading them, and so does the time by
which OpenSSL checks certificates.)
"""

import runpy
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flotilla_common import clock


class WrongClock:
    """A clock with the error given in the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._time, self._time_ns = time.time, time.time_ns

    def now(self, zone: object = UTC) -> datetime:
        """Return the time like `datetime.now`."""
        assert zone is UTC
        return datetime.now(UTC) + timedelta(seconds=self._wrong())

    def time(self) -> float:
        """Return the time like `time.time`."""
        return self._time() + self._wrong()

    def time_ns(self) -> int:
        """Return the time like `time.time_ns`."""
        return self._time_ns() + int(self._wrong() * 1e9)

    def _wrong(self) -> float:
        return float(self._file.read_text(encoding="ascii"))


def command(file: Path, module: str) -> list[str]:
    """Return the start of a command line that runs the module with such a clock, which is right at first."""
    put(file, 0)
    return ["-m", "tests.support.set_clock", str(file), module]


def put(file: Path, seconds: float) -> None:
    """Set the clock, in one moment."""
    new = file.with_suffix(".new")
    new.write_text(str(seconds), encoding="ascii")
    new.replace(file)


def main(arguments: Sequence[str]) -> None:
    """Run the program in this process, with the wrong clock."""
    file, module, *rest = arguments
    wrong = WrongClock(Path(file))
    vars(clock)["datetime"] = wrong
    vars(time).update(time=wrong.time, time_ns=wrong.time_ns)
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
