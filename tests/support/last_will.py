"""Takes down a set that `flotilla up` started, also when the test that started it is killed.

Such a set outlives its command by design. So a process of its own waits for the end of the block, or of the process
that holds it, and then takes down what is left.
"""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from flotilla_dev.cluster.processes import marked

ROOT = Path(__file__).parents[2]
FLOTILLA = Path(sys.executable).with_name("flotilla")
TRIES = 60
"""Tries, a second apart: an `up` that has not noticed the end of its test may still be starting processes."""


@contextmanager
def taken_down(state: Path) -> Generator[None]:
    """Take down the set in this folder after the block, also when this process is killed in it."""
    command = [sys.executable, "-m", __name__, str(state)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, cwd=ROOT) as heir:
        yield
    assert heir.returncode == 0, f"something of {state} is left"


def main() -> int:
    """Wait for the end of the standard input, then take the set down. Return 0 once no part of the set is left."""
    state = Path(sys.argv[1])
    sys.stdin.read()
    for _ in range(TRIES):
        subprocess.run([FLOTILLA, "down", "--state", state], stdin=subprocess.DEVNULL, check=False)
        if not state.exists() and not list(marked(state)):
            return 0
        time.sleep(1)
    return 1


if __name__ == "__main__":
    sys.exit(main())
