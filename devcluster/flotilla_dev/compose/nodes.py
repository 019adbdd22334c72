"""The container of compose.yaml that makes fake nodes: `python -m flotilla_dev.compose.nodes KUBECONFIG COUNT`.

It first waits for the apiserver, whose own image contains no health check. When it has ended, pods can be created.
"""

import asyncio
import sys
from pathlib import Path

from flotilla_common.clock import Clock, SystemClock
from flotilla_dev.cluster import kwok
from flotilla_dev.cluster.admin import admin, not_ready
from flotilla_dev.compose.keys import BOOT

POLL = 0.5


async def make(kubeconfig: Path, count: int, clock: Clock) -> None:
    """Create the nodes once the apiserver serves. Raises ClusterError if kwok does not manage them."""
    said = ""
    while problem := await not_ready(kubeconfig, clock):
        if problem != said:
            print(problem, flush=True)
        said = problem
        await clock.sleep(POLL)
    async with admin(kubeconfig, clock) as api:
        await kwok.add_nodes(api, count, clock)
        await kwok.retake_nodes(api, count, clock, BOOT)


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1]), int(sys.argv[2]), SystemClock()))
