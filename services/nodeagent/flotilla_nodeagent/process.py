"""The node agent as its own process: settings, logs, signals, event loop."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog
import uvloop
from structlog.contextvars import bind_contextvars

from flotilla_common import logs
from flotilla_common.bus import subjects
from flotilla_common.bus.connection import OpenBusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock, SystemClock, SystemEntropy
from flotilla_common.settings import Settings, SettingsError, of_command
from flotilla_common.stopping import stop_on_signals
from flotilla_nodeagent import app
from flotilla_nodeagent.credentials import plugins
from flotilla_nodeagent.credentials.documents import DockerFiles
from flotilla_nodeagent.credentials.keyring import LoginSource
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import PortTaken, Status, serve


def main(arguments: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> int:
    """Run until stopped by a signal and return the exit code."""
    try:
        settings = _settings(sys.argv[1:] if arguments is None else arguments, os.environ if env is None else env)
    except SettingsError as error:
        for problem in error.problems:
            sys.stderr.write(f"error: {problem}\n")
        return 2
    logs.configure(settings.log_level, settings.log_format)
    bind_contextvars(service="nodeagent", node=settings.node)
    gc.freeze()  # excludes the modules and types loaded so far from collection
    try:
        uvloop.run(_until_stopped(settings))
    except asyncio.CancelledError:
        structlog.get_logger().info("stopped")
        return 0
    except PortTaken as error:
        structlog.get_logger().error("cannot bind a port", error=str(error))
        return 2
    except ExceptionGroup as failures:
        opened, others = failures.split(OpenBusError)
        if opened is None or others is not None:
            raise
        structlog.get_logger().error("the bus requires no credentials", error=str(opened.exceptions[0]))
        return 2
    return 1


def _settings(arguments: Sequence[str], env: Mapping[str, str]) -> Settings:
    settings = of_command(arguments, env)
    if not settings.node:
        raise SettingsError(["the agent needs the name of its node: --node NAME, or NODE_NAME in the environment"])
    return settings


async def _until_stopped(settings: Settings) -> None:
    stop_on_signals()
    clock, entropy, status = SystemClock(), SystemEntropy(), Status()
    inbox = subjects.node_inbox(settings.node)
    bus = NatsBus(settings, name=f"nodeagent/{settings.node}", clock=clock, inbox_prefix=inbox)

    report = partial(status.ready, "runtime")
    runtimes = Runtimes(clock, report, override=settings.cri_socket, host_root=settings.host_root)
    logins = _node_logins(settings, clock, status, os.environ)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(bus.close)
        stack.callback(runtimes.close)
        await stack.enter_async_context(serve(status, {settings.health_port, settings.metrics_port}))
        work = app.run(
            settings=settings,
            bus=bus,
            clock=clock,
            entropy=entropy,
            status=status,
            runtimes=runtimes,
            node_logins=logins,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(bus.refused())
            group.create_task(work)


def _node_logins(settings: Settings, clock: Clock, status: Status, env: Mapping[str, str]) -> list[LoginSource]:
    """Return the sources of logins: plugins, then files (nodeagent.md §3.5)."""
    remark = partial(status.ready, "credentials", True)
    file, folder = Path(settings.plugin_config_file), Path(settings.plugin_bin_dir)
    home = Path(env["HOME"]) if env.get("HOME") else None
    kubelet = Path(settings.host_root + settings.kubelet_root_dir)
    return [plugins.load(file, folder, clock, env, remark), DockerFiles(kubelet, Path.cwd(), home)]
