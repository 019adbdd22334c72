"""The Flotilla services of the local set: one process each, and whether they are ready."""

import sys
from pathlib import Path

from flotilla_cli.cluster.bus_users import credentials_of
from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.cluster.ports import HOST
from flotilla_cli.cluster.probes import not_ready
from flotilla_cli.cluster.process import Process, Records, cleaned, end_of
from flotilla_cli.cluster.progress import Say
from flotilla_common.clock import Clock
from flotilla_common.settings import SettingsError, load, split_flags

READY_WITHIN = 90.0  # seconds; it takes 3 on an idle machine
POLL = 0.2


def ensure(name: str, local_set: LocalSet, records: Records, state_dir: Path) -> Process:
    """The service's process, started if it does not run."""
    argv = [sys.executable, "-m", "flotilla_cli", "run", name, *_flags(name, local_set, state_dir)]
    return records.alive(name) or records.spawn(name, argv)


def check_settings(local_set: LocalSet, records: Records, state_dir: Path) -> None:
    """Raises ClusterError when a service that is to be started would refuse the FLOTILLA_ variables that it inherits:
    better now than after everything else was started."""
    for name in local_set.services:
        if records.alive(name):
            continue
        flags, _ = split_flags(_flags(name, local_set, state_dir))
        try:
            load(flags, cleaned())
        except SettingsError as error:
            raise ClusterError(f"The services would not start: {error}") from error


def _flags(name: str, local_set: LocalSet, state_dir: Path) -> list[str]:
    port = local_set.services[name]
    return [
        f"--kubeconfig={local_set.kubeconfig}",
        f"--nats={local_set.nats}",
        *([f"--nats-creds={credentials_of(Path(local_set.nats_creds), name)}"] if local_set.nats_creds else []),
        *([f"--nats-ca={local_set.nats_ca}"] if local_set.nats_ca else []),
        f"--webhook-url={local_set.webhook_url}",
        f"--webhook-port={local_set.webhook_port}",
        f"--webhook-cert-dir={state_dir / 'webhook-certificates'}",
        f"--health-port={port}",
        f"--metrics-port={port}",
    ]


async def wait_ready(local_set: LocalSet, records: Records, clock: Clock, say: Say) -> None:
    """Return when every service is ready. Raises ClusterError, with the end of its log, when one ends or is late."""
    deadline = clock.monotonic() + READY_WITHIN
    waiting = dict.fromkeys(local_set.services, "starting")
    while waiting:
        if clock.monotonic() > deadline:
            lines = [f"{name}: {why}. {_log(name, records)}" for name, why in waiting.items()]
            raise ClusterError(f"Not ready after {READY_WITHIN:.0f} s:\n" + "\n".join(lines))
        for name in list(waiting):
            if not records.alive(name):
                raise ClusterError(f"The {name} service ended right after its start. {_log(name, records)}")
            waiting[name] = await not_ready(HOST, local_set.services[name])
            if not waiting[name]:
                del waiting[name]
        if waiting:
            say(f"waiting for {', '.join(waiting)}")
            await clock.sleep(POLL)


def _log(name: str, records: Records) -> str:
    process = records.get(name)
    return end_of(Path(process.log)) if process else ""
