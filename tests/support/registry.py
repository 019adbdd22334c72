"""A private image registry: from a container where there are any (see `containers`), else crane's, as a process.

That of the set's real nodes is always crane's: it is a part of the set, and serves in the nodes' network.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from flotilla_cli.local import HOST
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.ports import free_ports
from flotilla_dev.cluster.processes import Processes
from flotilla_dev.cluster.realnodes.registry import Registry, serve
from tests.support.containers import contained, container
from tests.support.stand_ins import REGISTRY

PORT = 5000
READY_WITHIN = 60.0
POLL = 0.05


@asynccontextmanager
async def registry(folder: Path, program: Callable[[str], Path]) -> AsyncGenerator[Registry]:
    """Run an empty registry for the time of the block."""
    clock = SystemClock()
    if not contained(REGISTRY):
        processes = Processes(folder)
        made = Registry(f"{HOST}:{free_ports(1)[0]}")
        try:
            await serve(made, folder, processes, program, clock, bound=True)
            yield made
        finally:
            await processes.stop(["registry"], clock, grace=0)
        return
    with container(REGISTRY, publish=PORT) as started:
        made = Registry(f"{HOST}:{started.get_exposed_port(PORT)}")
        deadline = clock.monotonic() + READY_WITHIN
        while not await made.serves():
            assert clock.monotonic() < deadline, started.get_logs()
            await clock.sleep(POLL)
        yield made
