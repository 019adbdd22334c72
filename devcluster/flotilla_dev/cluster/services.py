"""Starts the Flotilla services of the local cluster, one process each, and waits until they are ready."""

import sys
from pathlib import Path

from flotilla_cli.bus_server import credentials_of
from flotilla_cli.local import HOST, ClusterError, LocalCluster, Process
from flotilla_cli.output import Say
from flotilla_common.clock import Clock
from flotilla_common.settings import SettingsError, load, split_flags
from flotilla_dev.cluster.probes import not_ready
from flotilla_dev.cluster.processes import Processes, cleaned, end_of

READY_WITHIN = 90.0  # seconds; it takes 3 on an idle machine
POLL = 0.2


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
