"""Gets all programs that tests start, before the tests begin: no test then waits for a build.

python -m tests.support.programs
"""

import asyncio

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.programs import PROGRAMS
from flotilla_dev.cluster.provision import provide
from tests.support import surroundings


def main() -> None:
    """Find, download or build them, telling what takes long."""
    surroundings.enter()
    asyncio.run(provide(PROGRAMS, SystemClock(), say=lambda line: print(f"  {line}", flush=True)))


if __name__ == "__main__":
    main()
