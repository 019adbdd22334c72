"""`flotilla run`: the services outside the cluster, against any cluster.

All named services share this process, or have one each with `--split` (each is restarted when it dies). Without a NATS
URL flotilla-dev starts an embedded nats-server, which ends with the command. Settings are those of
`flotilla_common.settings`.
"""

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import structlog
from structlog.contextvars import bind_contextvars

from flotilla_cli import plugins
from flotilla_cli.local import bound_command
from flotilla_cli.nats_config import credentials_of
from flotilla_common import logs
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.kube.config import ApiConfig, load_config
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.service import Service, run_process
from flotilla_common.settings import Settings, SettingsError, known_flags, load, split_flags
from flotilla_common.stopping import STOP_SECONDS
from flotilla_insight.services import installed, usual
from flotilla_insight.services import load as load_service

NODE_AGENT = "nodeagent"

RESTART_FIRST = 0.1
"""Seconds before a dead service is started again …"""

RESTART_MOST = 30.0
"""… doubling up to this while it keeps dying."""

STEADY_AFTER = 10.0
"""Seconds after which it did not die of its start, even on a busy machine."""

END_WITHIN = STOP_SECONDS + 5
"""Seconds until a service that was told to end is killed. It needs one or two; one that hangs says where by itself."""


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
    epilog="Settings: " + ", ".join(f"--{flag}" for flag, *_ in known_flags()) + ".",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> None:
    """Run services (default: all but console and statemetrics) outside the cluster.

    flotilla run [SERVICE …] --kubeconfig F [--nats URL | --nats-listen HOST:PORT] [--webhook-url https://IP:PORT]
    [--split]

    \b
    flotilla run nodeagent --node NAME --nats URL --creds FILE [--cri-socket PATH]
    """
    if NODE_AGENT in split_flags(arguments)[1]:  # it gets the process: it is small because it imports none of this
        own = [argument for argument in arguments if argument != NODE_AGENT]
        os.execv(sys.executable, [sys.executable, "-m", "flotilla_nodeagent", *own])
    split = "--split" in arguments
    flags, names = split_flags([argument for argument in arguments if argument != "--split"])
    config = flags.pop("config", None) or os.environ.get("FLOTILLA_CONFIG")
    try:
        settings = load(flags, os.environ, Path(config) if config else None)
        services = _chosen(names)
        cluster = asyncio.run(load_config(settings))
    except SettingsError as error:
        raise click.ClickException("\n       ".join(error.problems)) from error
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    given = [f"--{flag}={value}" if value else f"--{flag}" for flag, value in flags.items()]
    sys.exit(
        _run(services, settings, [*given, *([f"--config={config}"] if config else [])], None if split else cluster)
    )


def _chosen(names: Sequence[str]) -> list[Service]:
    services = installed()
    unknown = [name for name in names if name not in services]
    if unknown:
        raise SettingsError([f"there is no service {name!r}; there are {', '.join(services)}" for name in unknown])
    return [load_service(services[name]) for name in names or usual()]


def _run(services: list[Service], settings: Settings, flags: Sequence[str], cluster: ApiConfig | None) -> int:
    """In this process, with the way to this cluster; or in one process each, which find theirs."""

    def work(settings: Settings) -> int:
        return run_process(services, settings, cluster) if cluster else _split(services, settings, flags)

    if settings.nats_url:
        return work(settings)
    embedded_bus = plugins.local("embedded-bus")
    if embedded_bus is None:
        raise click.ClickException(plugins.missing("A bus of its own (`flotilla run` without --nats)"))
    with embedded_bus(settings) as reaching:
        return work(reaching)


def _split(services: list[Service], settings: Settings, flags: Sequence[str]) -> int:
    """Run one process per service, and start those again that end; return the exit code.

    All have one replica name and one lease holder name, which survive restarts. A process that replaces one that has
    ended holds its leases at once, and need not wait for them to expire.
    """
    logs.configure(settings.log_level, settings.log_format)
    ours = SystemEntropy().token()
    replica = settings.replica or ours
    settings = dataclasses.replace(settings, replica=replica, lease_holder=settings.lease_holder or f"{replica}-{ours}")
    bind_contextvars(replica=replica)
    return asyncio.run(_supervise([service.name for service in services], settings, flags))


async def _supervise(names: Sequence[str], settings: Settings, flags: Sequence[str]) -> int:
    work = asyncio.current_task()
    assert work is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        async with asyncio.TaskGroup() as group:
            for index, name in enumerate(names):
                group.create_task(_keep_running(name, _own_flags(name, settings, index, flags)))
    except asyncio.CancelledError:
        return 0
    return 1


def _own_flags(name: str, settings: Settings, index: int, flags: Sequence[str]) -> list[str]:
    """Return the flags of the process with this index: the common ones, its credentials, its replica, its ports."""
    ports = {"health-port": settings.health_port, "metrics-port": settings.metrics_port}
    own = [f"--{flag}={port + 2 * index}" for flag, port in ports.items() if port]
    creds = Path(settings.nats_creds)
    own_creds = credentials_of(creds, name) if creds.is_dir() else creds
    bus = [
        f"--nats={settings.nats_url}",
        *([f"--nats-creds={own_creds}"] if settings.nats_creds else []),
        *([f"--nats-ca={settings.nats_ca}"] if settings.nats_ca else []),
    ]
    names = [f"--replica={settings.replica}", f"--lease-holder={settings.lease_holder}"]
    return [*flags, *bus, *names, *own]


async def _keep_running(name: str, flags: Sequence[str]) -> None:
    log, clock, delay = structlog.get_logger(service=name), SystemClock(), RESTART_FIRST
    while True:
        started = clock.monotonic()
        command = bound_command([sys.executable, "-m", "flotilla_cli", "run", name, *flags], "TERM")
        process = await asyncio.create_subprocess_exec(*command)
        try:
            code = await process.wait()
        finally:
            await _end(process)
        if clock.monotonic() - started > STEADY_AFTER:
            delay = RESTART_FIRST
        log.warning("service ended, starting it again", exit_code=code, seconds=delay)
        await clock.sleep(delay)
        delay = min(delay * 2, RESTART_MOST)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to end, and do not ask twice."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(END_WITHIN):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
