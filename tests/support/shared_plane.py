"""One control plane with all services for the tests of a run that affect only their own namespaces.

    with shared_plane(folder) as flotilla: …       # in as many processes as needed, one after another or at once

The first process that needs it starts the host, a process of its own that serves until the last guest has left. Guests
hold a shared lock on a file; the kernel releases it also when they are killed. So no process outlives the tests, and no
worker of pytest-xdist depends on another.

A guest has a namespace of its own, and names of its own for objects without a namespace. It kills, installs and removes
nothing.
"""

import asyncio
import fcntl
import os
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

from flotilla_cli.local import Process, is_alive
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.control_plane import ControlPlane
from flotilla_dev.cluster.kwok import Kubelet
from flotilla_dev.cluster.nats import NatsServer
from flotilla_dev.cluster.processes import spawn, tail
from tests.support.cluster import Cluster, control_plane, programs
from tests.support.fleet import ALL_SERVICES, Fleet, Member, fleet
from tests.support.metrics_api import serve_metrics
from tests.support.rollout_controller import serve_rollouts

ROOT = Path(__file__).parents[2]
NODES = 3
KUBELET = Kubelet(start=50, restart=50, stop=50, complete=50)
FLAGS = ("--lease-duration=60", "--lease-retry-period=10")
"""No test waits for a lease here, and renewals would be a sixth of all requests."""
READY_WITHIN = 180.0  # seconds; it takes 10 on an idle machine
ENDED_WITHIN = 30.0
NOTICED_WITHIN = 2.0
"""Seconds within which the host notices that the last guest has left."""
POLL = 0.05


class Described(msgspec.Struct):
    """A service of the shared plane, as `Member` needs it."""

    name: str
    process: Process
    health: int
    metrics: int


class Description(msgspec.Struct):
    """A file in the plane's folder by which guests find it, present as long as it accepts guests."""

    state_dir: Path
    nats: NatsServer
    webhook_port: int
    members: dict[str, Described]


@contextmanager
def shared_plane(folder: Path, services: Iterable[str] = ALL_SERVICES) -> Generator[Fleet]:
    """Use the control plane and services that all users of this folder share; the first one chooses the services."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "guests").open("w") as guests:
        fcntl.flock(guests, fcntl.LOCK_SH)
        host = _host(folder, services)
        yield _fleet(folder)
    _leave(folder, host)


def _host(folder: Path, services: Iterable[str]) -> Process:
    """Return the ready host process, started if there is none."""
    record = folder / "host.json"
    with (folder / "start").open("w") as start:
        fcntl.flock(start, fcntl.LOCK_EX)
        host = msgspec.json.decode(record.read_bytes(), type=Process) if record.exists() else None
        if host is None or not is_alive(host):
            _description(folder).unlink(missing_ok=True)
            argv = [sys.executable, "-m", __name__, str(folder), *services]
            host = spawn("shared-plane", argv, _log(folder), state_dir=folder, env={"PYTHONPATH": str(ROOT)})
            record.write_bytes(msgspec.json.encode(host))
        deadline = time.monotonic() + READY_WITHIN
        while not _description(folder).exists():
            assert is_alive(host), f"the shared plane ended:\n{tail(_log(folder), 40)}"
            assert time.monotonic() < deadline, f"the shared plane is late:\n{tail(_log(folder), 40)}"
            time.sleep(POLL)
    return host


def _leave(folder: Path, host: Process) -> None:
    """Leave the plane; the last guest waits until all its processes have ended."""
    deadline = time.monotonic() + NOTICED_WITHIN
    while _description(folder).exists() and time.monotonic() < deadline:
        time.sleep(POLL)
    deadline = time.monotonic() + ENDED_WITHIN
    while not _description(folder).exists() and is_alive(host):
        assert time.monotonic() < deadline, "the shared plane does not end"
        time.sleep(POLL)


def _fleet(folder: Path) -> Fleet:
    described = msgspec.json.decode(_description(folder).read_bytes(), type=Description, dec_hook=_path)
    program = programs()
    cluster = Cluster(ControlPlane(described.state_dir, program, SystemClock()), program)
    flotilla = Fleet(cluster, described.nats, [])
    flotilla.webhook_port = described.webhook_port
    for name, one in described.members.items():
        flotilla.members[name] = Member(one.name, one.process, one.health, one.metrics)
    return flotilla


def _path(kind: type[Path], text: str) -> Path:
    """Decode a path for msgspec, which has no paths."""
    return kind(text)


def _description(folder: Path) -> Path:
    return folder / "plane.json"


def _log(folder: Path) -> Path:
    return folder / "host.log"


async def serve(folder: Path, services: Iterable[str]) -> None:
    """Serve until all guests have left, and accept no new guest until everything has ended."""
    state_dir = folder / f"plane-{os.getpid()}"
    with (folder / "guests").open("w") as guests:
        async with (
            control_plane(state_dir, nodes=NODES, kubelet=KUBELET) as cluster,
            fleet(cluster, services, FLAGS) as flotilla,
        ):
            serve_metrics(cluster)
            serve_rollouts(cluster)
            written = folder / "plane.json.new"
            written.write_bytes(msgspec.json.encode(_described(flotilla), enc_hook=str))
            written.rename(_description(folder))
            await asyncio.to_thread(fcntl.flock, guests, fcntl.LOCK_EX)
            _description(folder).unlink()


def _described(flotilla: Fleet) -> Description:
    members = {
        name: Described(one.name, one.process, one.health, one.metrics_port) for name, one in flotilla.members.items()
    }
    return Description(flotilla.cluster.plane.places.state_dir, flotilla.nats, flotilla.webhook_port, members)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2:]))
