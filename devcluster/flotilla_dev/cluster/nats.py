"""Configures and starts a nats-server: JetStream on disk, messages up to 8 MiB.

Only users with credentials connect, each to its own subjects (docs/adr/0007): access to the bus means being able to
create pods, so not every program of this machine may have it. On an address other than loopback the server speaks TLS,
with a certificate that is made here; its authority comes with the users' credentials.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from flotilla_cli.certificates import own_names
from flotilla_cli.local import HOST, Process, write_private
from flotilla_cli.nats_config import ENVIRONMENT, LIMITS, BusUsers
from flotilla_common.clock import Clock, SystemClock
from flotilla_dev.cluster.ports import free_ports, serves
from flotilla_dev.cluster.processes import Processes, until
from flotilla_dev.cluster.provision import provide

NAME = "nats-server"
ANY = ("0.0.0.0", "::")
"""Hosts that mean all addresses."""
READY_WITHIN = 20.0  # seconds; it takes 0.05 on an idle machine
MEMORY_STORE = 1 << 30
"""Limit of JetStream's streams in memory, in bytes: 250,000 objects of 4 KB.

The server's own memory limit is lower.
"""

CONFIGURATION = """\
include "{users}"
{tls}server_name: flotilla
host: {host}
port: {port}
http: "{local}:{monitor}"
{limits}jetstream {{
  store_dir: {store}
  max_memory_store: {memory}
  max_file_store: 8589934592
}}
"""


class NatsServer(msgspec.Struct, frozen=True):
    """A running nats-server.

    `url` is for clients, `monitor` serves /healthz, /varz, /jsz. `credentials` is the folder with the credentials of
    services and people, `authority` the file with the authority of its certificate, empty if it speaks no TLS.
    """

    url: str
    monitor: str
    process: Process
    state_dir: Path
    credentials: str
    authority: str = ""

    async def close(self, clock: Clock, grace: float = 5) -> None:
        """Stop the server. Its stored messages stay in the state folder."""
        await Processes(self.state_dir).stop([NAME], clock, grace)

    def stop(self) -> None:
        """Stop the server, for callers without an event loop."""
        asyncio.run(self.close(SystemClock()))


async def start_nats(
    state_dir: Path,
    port: int = 0,
    *,
    program: Callable[[str], Path] | None = None,
    monitor_port: int = 0,
    bound: bool = True,
    clock: Clock | None = None,
    host: str = HOST,
) -> NatsServer:
    """Start nats-server on the given or free ports, or find the running one of this state folder; wait until it serves.

    If `bound`, it ends with this process. Without a `program`, one is searched for, downloaded or built. On a `host`
    other than loopback it speaks TLS.
    """
    clock = clock or SystemClock()
    program = program or await provide([NAME], clock)
    chosen = free_ports(2)
    port, monitor_port = port or chosen[0], monitor_port or chosen[1]
    processes = Processes(state_dir)
    process = processes.alive(NAME)
    users = BusUsers(state_dir)
    users.prepare()
    if process is None:
        config = configure(users, state_dir, host, port, monitor_port, clock)
        write_private(state_dir / "nats.json", msgspec.json.encode([host, port, monitor_port]))
        argv = [str(program(NAME)), "--config", str(config)]
        process = processes.spawn(NAME, argv, bound=bound, env=ENVIRONMENT)
    host, port, monitor_port = msgspec.json.decode((state_dir / "nats.json").read_bytes(), type=tuple[str, int, int])
    server = NatsServer(
        url=f"{'nats' if host == HOST else 'tls'}://{bracketed(HOST if host in ANY else host)}:{port}",
        monitor=f"http://{HOST}:{monitor_port}",
        process=process,
        state_dir=state_dir,
        credentials=str(users.credentials),
        authority="" if host == HOST else str(users.authority(clock).certificate),
    )
    problem = "nats-server did not become ready"
    await until(partial(serves, f"{server.monitor}/healthz"), process, clock, READY_WITHIN, problem)
    return server


def configure(users: BusUsers, state_dir: Path, host: str, port: int, monitor: int, clock: Clock) -> Path:
    """Write the configuration of the server with this state folder. Return the file.

    For a host other than loopback, also issue the server's certificate.
    """
    pair = None if host == HOST else state_dir / "tls" / "server.pem"
    if pair is not None:
        users.authority(clock).issue_server(pair, own_names("" if host in ANY else host), clock)
    included = str(users.configuration.relative_to(state_dir))
    write_private(state_dir / "nats.conf", configuration(included, host, port, monitor, state_dir / "nats", pair))
    return state_dir / "nats.conf"


def configuration(users: str, host: str, port: int, monitor: int, store: Path, pair: Path | None) -> str:
    """Return a server's configuration.

    `users` is the file with the authorization block, relative to the configuration; `pair` the server's TLS key and
    certificate.
    """
    file = msgspec.json.encode(str(pair)).decode()
    return CONFIGURATION.format(
        users=users,
        tls=f"tls {{ cert_file: {file}, key_file: {file} }}\n" if pair else "",
        host=host,
        local=HOST,
        port=port,
        monitor=monitor,
        limits=LIMITS,
        memory=MEMORY_STORE,
        store=msgspec.json.encode(str(store)).decode(),
    )


def bracketed(host: str) -> str:
    """Return the host as URLs have it."""
    return f"[{host}]" if ":" in host else host


def reload_users(process: Process) -> None:
    """Make a running nats-server read its configuration again; users that are gone are disconnected."""
    os.kill(process.pid, signal.SIGHUP)
