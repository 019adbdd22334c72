"""Private control planes for tests: real etcd, apiserver, controllers, scheduler and nats-server on free ports.

They sync nothing to disk, and are bound to the test process: even `kill -9` of pytest leaves no process behind.

    async with control_plane(tmp_path) as cluster:
        cluster.kubectl("apply", "-f", "-", input=manifest)
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.control_plane import ControlPlane, PlaneOptions
from flotilla_dev.cluster.kwok import Kubelet
from flotilla_dev.cluster.nats import NatsServer, start_nats
from flotilla_dev.cluster.programs import CONTROL_PLANE
from flotilla_dev.cluster.provision import search


class MissingPrograms(Exception):
    """The control plane's programs are not in the cache; tests take none from PATH."""


def programs() -> Callable[[str], Path]:
    """Return the function that gives a program's path; never downloads or builds."""
    result = search(CONTROL_PLANE.values())
    missing = sorted(CONTROL_PLANE.keys() - result.found.keys())
    if missing:
        how = "run `.venv/bin/python -m tests.support.programs` once, it gets them"
        raise MissingPrograms(f"{', '.join(missing)}: {how}. Tried: {result.tried}")
    return result.found.__getitem__


async def eventually(check: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until the check holds, trying ten times a second; raises TimeoutError.

    The deadline is generous: it is for what never happens, not for what is late, because machines are shared.
    """
    clock = SystemClock()
    async with asyncio.timeout(seconds):
        while not check():
            await clock.sleep(0.1)


class Cluster:
    """A running control plane and its clients."""

    def __init__(self, plane: ControlPlane, program: Callable[[str], Path]) -> None:
        self.plane = plane
        self.kubeconfig = plane.kubeconfig
        self.program = program

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True, timeout: float = 60) -> str:
        """Run kubectl and return what it prints; raises with its error output."""
        reply = subprocess.run(
            [self.program("kubectl"), "--kubeconfig", self.kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and reply.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {reply.stderr or reply.stdout}")
        return reply.stdout

    def read(self, *arguments: str) -> dict[str, Any]:
        """Run `kubectl get … -o json`."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    async def nats(self) -> NatsServer:
        """Return the nats-server beside this control plane (the same one every time)."""
        return await start_nats(self.plane.places.state_dir, program=self.program, bound=True)


@asynccontextmanager
async def control_plane(
    state_dir: Path, *, nodes: int = 3, kubelet: Kubelet | None = None, apiserver_flags: tuple[str, ...] = ()
) -> AsyncGenerator[Cluster]:
    """Run a control plane with fake nodes for the time of the block."""
    program = programs()
    clock = SystemClock()
    options = PlaneOptions(durable=False, bound=True, apiserver_flags=apiserver_flags, kubelet=kubelet or Kubelet())
    plane = ControlPlane(state_dir, program, clock, options=options)
    try:
        await plane.start()
        await plane.add_nodes(nodes)
        yield Cluster(plane, program)
    finally:
        await plane.processes.stop(["nats-server"], clock, grace=0)
        await plane.stop(grace=0)  # nothing here is worth a farewell
