"""The container of compose.yaml that makes fake nodes: `python -m flotilla_dev.compose.nodes KUBECONFIG COUNT`.

First it waits for the apiserver, whose own image holds nothing that could ask for its health. When it has ended, pods
can be made.
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
    """Return when the apiserver serves and the nodes take pods. Raises ClusterError when kwok does not take them."""
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
