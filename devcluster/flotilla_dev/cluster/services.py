"""Starts the Flotilla services of the local cluster, and the node agents of its real nodes; waits until they are ready.

Each service is one process. Each agent runs inside its node, with its own credentials for the bus.
"""

import sys
from pathlib import Path

from flotilla_cli import console_key
from flotilla_cli.local import HOST, ClusterError, LocalCluster, Process, write_private
from flotilla_cli.nats_config import BusUsers, credentials_of
from flotilla_cli.output import Say
from flotilla_common.clock import Clock
from flotilla_common.settings import SettingsError, load, split_flags
from flotilla_dev.cluster.ports import not_ready
from flotilla_dev.cluster.processes import Processes, cleaned, end_of
from flotilla_dev.cluster.realnodes.nodes import RealNodes, node_name, part_name
from flotilla_insight.services import usual

READY_WITHIN = 90.0  # seconds; it takes 3 on an idle machine
POLL = 0.2

CONSOLE = "console"
"""The service that `flotilla up` runs although it runs only on demand elsewhere."""

AGENT = "agent"
AGENT_PORT = 10221
AGENT_READY_WITHIN = 60.0  # seconds; it takes two


def names() -> list[str]:
    """Return the names of the services of a local cluster."""
    return [*usual(), CONSOLE]


def console_url(cluster: LocalCluster, state_dir: Path) -> str:
    """Return the URL of the console, with a key for one session."""
    return console_key.url_of(cluster.console_port, console_key.offer(_key_file(state_dir)))


def _key_file(state_dir: Path) -> Path:
    return state_dir / "console.key"


def ensure(name: str, cluster: LocalCluster, processes: Processes, state_dir: Path) -> Process:
    """Return the service's process, started if it does not run."""
    argv = [sys.executable, "-m", "flotilla_cli", "run", name, *_flags(name, cluster, state_dir)]
    return processes.alive(name) or processes.spawn(name, argv)


def check_settings(cluster: LocalCluster, processes: Processes, state_dir: Path) -> None:
    """Raise ClusterError if a service would reject the FLOTILLA_ variables that it inherits.

    This is checked before anything is started.
    """
    for name in cluster.services:
        if processes.alive(name):
            continue
        flags, _ = split_flags(_flags(name, cluster, state_dir))
        try:
            load(flags, cleaned())
        except SettingsError as error:
            raise ClusterError(f"The services would not start: {error}") from error


def _flags(name: str, cluster: LocalCluster, state_dir: Path) -> list[str]:
    port = cluster.services[name]
    return [
        f"--kubeconfig={cluster.kubeconfig}",
        f"--nats={cluster.nats}",
        *([f"--nats-creds={credentials_of(Path(cluster.nats_creds), name)}"] if cluster.nats_creds else []),
        *([f"--nats-ca={cluster.nats_ca}"] if cluster.nats_ca else []),
        f"--webhook-url={cluster.webhook_url}",
        f"--webhook-port={cluster.webhook_port}",
        f"--webhook-cert-dir={state_dir / 'webhook-certificates'}",
        f"--health-port={port}",
        f"--metrics-port={port}",
        *(console_key.flags(cluster.console_port, _key_file(state_dir)) if name == CONSOLE else ()),
    ]


async def wait_ready(cluster: LocalCluster, processes: Processes, clock: Clock, say: Say) -> None:
    """Wait until every service is ready. Raises ClusterError, with the end of its log, if one ends or on timeout."""
    deadline = clock.monotonic() + READY_WITHIN
    waiting = dict.fromkeys(cluster.services, "starting")
    while waiting:
        if clock.monotonic() > deadline:
            lines = [f"{name}: {why}. {_log(name, processes)}" for name, why in waiting.items()]
            raise ClusterError(f"Not ready after {READY_WITHIN:.0f} s:\n" + "\n".join(lines))
        for name in list(waiting):
            if not processes.alive(name):
                raise ClusterError(f"The {name} service ended right after its start. {_log(name, processes)}")
            waiting[name] = await not_ready(HOST, cluster.services[name])
            if not waiting[name]:
                del waiting[name]
        if waiting:
            say(f"waiting for {', '.join(waiting)}")
            await clock.sleep(POLL)


def _log(name: str, processes: Processes) -> str:
    process = processes.get(name)
    return end_of(Path(process.log)) if process else ""


class Agents:
    """The agents of a cluster, one per real node."""

    def __init__(self, state_dir: Path, nodes: RealNodes, count: int, clock: Clock) -> None:
        self._state_dir = state_dir
        self._nodes = nodes
        self._names = [node_name(index) for index in range(count)]
        self._clock = clock
        self._processes = Processes(state_dir)

    def enrol(self) -> None:
        """Make missing credentials. Call this before the bus starts, because it reads its users then."""
        users = BusUsers(self._state_dir)
        for name in self._names:
            if not self._credentials(name).exists() or name not in users.nodes():
                write_private(self._credentials(name), users.add_node(name, self._clock))

    async def start(self, nats: str, say: Say) -> None:
        """Start the agents that do not run, and wait until all of them are ready."""
        for name in self._names:
            self._ensure(name, nats)
        deadline = self._clock.monotonic() + AGENT_READY_WITHIN
        for index, name in enumerate(self._names):
            while trouble := await not_ready(self._nodes.network.node(index), AGENT_PORT):
                if self._clock.monotonic() > deadline:
                    end = end_of(self._processes.log(part_name(name, AGENT)))
                    raise ClusterError(f"The agent of {name} is not ready: {trouble}. {end}")
                say(f"waiting for {name}")
                await self._clock.sleep(POLL)

    def _ensure(self, name: str, nats: str) -> None:
        argv = [
            *(sys.executable, "-m", "flotilla_nodeagent"),
            f"--node={name}",
            f"--nats={nats}",
            f"--creds={self._credentials(name)}",
            f"--node-state-dir={self._state_dir / 'nodes' / name / AGENT}",
            f"--health-port={AGENT_PORT}",
            f"--metrics-port={AGENT_PORT}",
        ]
        if not self._processes.alive(part_name(name, AGENT)):
            self._processes.spawn(part_name(name, AGENT), self._nodes.inside(name, argv))

    def _credentials(self, name: str) -> Path:
        return self._state_dir / "nodes" / name / "bus.creds"
