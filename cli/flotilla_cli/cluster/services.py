"""The Flotilla services of the local set: one process each, and whether they are ready."""

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import aiohttp

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.cluster.ports import HOST
from flotilla_cli.cluster.process import Process, is_alive, tail
from flotilla_cli.cluster.progress import Say
from flotilla_cli.cluster.records import Records
from flotilla_common.clock import Clock
from flotilla_common.settings import SettingsError, load, split_flags

READY_WITHIN = 90.0  # seconds; it takes 3 on an idle machine
POLL = 0.2
PROBE = aiohttp.ClientTimeout(total=2)


def installed() -> list[str]:
    """The services that are installed, without importing them."""
    return sorted(point.name for point in entry_points(group="flotilla.services"))


def ensure(name: str, local_set: LocalSet, records: Records, state_dir: Path) -> Process:
    """The service's process, started if it does not run."""
    current = records.get(name)
    if current and is_alive(current):
        return current
    argv = [sys.executable, "-m", "flotilla_cli", "run", name, *_flags(name, local_set, state_dir)]
    return records.spawn(name, argv, state_dir / "logs" / f"{name}.log")


def check_settings(local_set: LocalSet, records: Records, state_dir: Path) -> None:
    """Raise if a service that is to be started would refuse the FLOTILLA_ variables of this shell, which it inherits:
    better now than after everything else was started."""
    config = os.environ.get("FLOTILLA_CONFIG")
    for name in local_set.services:
        current = records.get(name)
        if current and is_alive(current):
            continue
        flags, _ = split_flags(_flags(name, local_set, state_dir))
        try:
            load(flags, os.environ, Path(config) if config else None)
        except SettingsError as error:
            raise ClusterError(f"The services would not start: {error}") from error


def _flags(name: str, local_set: LocalSet, state_dir: Path) -> list[str]:
    port = local_set.services[name]
    return [
        f"--kubeconfig={local_set.kubeconfig}",
        f"--nats={local_set.nats}",
        *([f"--nats-creds={local_set.nats_creds}"] if local_set.nats_creds else []),
        f"--webhook-url={local_set.webhook_url}",
        f"--webhook-port={local_set.webhook_port}",
        f"--webhook-cert-dir={state_dir / 'webhook-certificates'}",
        f"--health-port={port}",
        f"--metrics-port={port}",
    ]


async def wait_ready(local_set: LocalSet, records: Records, clock: Clock, say: Say) -> None:
    """Return when every service is ready. Raises with the end of its log when one ends, or is not ready in time."""
    deadline = clock.monotonic() + READY_WITHIN
    waiting = dict.fromkeys(local_set.services, "starting")
    while waiting:
        if clock.monotonic() > deadline:
            raise ClusterError(_late(waiting, records))
        for name in list(waiting):
            process = records.get(name)
            if process is None or not is_alive(process):
                raise ClusterError(f"The {name} service ended right after its start. {_log(name, records)}")
            waiting[name] = await not_ready(local_set.services[name])
            if not waiting[name]:
                del waiting[name]
        if waiting:
            say(f"waiting for {', '.join(waiting)}")
            await clock.sleep(POLL)


async def not_ready(port: int) -> str:
    """Empty when the service on this port is ready, else what it waits for."""
    try:
        async with (
            aiohttp.ClientSession(timeout=PROBE) as session,
            session.get(f"http://{HOST}:{port}/readyz") as reply,
        ):
            return "" if reply.status == 200 else _waits(await reply.text())
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"no answer ({type(error).__name__})"


def _waits(report: str) -> str:
    return "; ".join(line[3:] for line in report.splitlines() if line.startswith("[-]")) or "not ready"


def _late(waiting: dict[str, str], records: Records) -> str:
    lines = [f"{name}: {why}. {_log(name, records)}" for name, why in waiting.items()]
    return f"Not ready after {READY_WITHIN:.0f} s:\n" + "\n".join(lines)


def _log(name: str, records: Records) -> str:
    process = records.get(name)
    return f"End of {process.log}:\n{tail(Path(process.log))}" if process else ""
