"""Get all programs that tests start, before the tests begin: none of them waits for a build then.

python -m tests.support.programs
"""

import asyncio

from flotilla_cli.cluster.programs import PROGRAMS
from flotilla_cli.cluster.provision import provide
from flotilla_common.clock import SystemClock
from tests.support import surroundings


def main() -> None:
    """Find, download or build them, telling what takes long."""
    surroundings.enter()
    asyncio.run(provide(PROGRAMS, SystemClock(), say=lambda line: print(f"  {line}", flush=True)))


if __name__ == "__main__":
    main()
