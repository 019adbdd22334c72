"""The bus of `flotilla run` without `--nats`: a nats-server that is restarted if it dies, and ends with the command.

With `--nats-listen` node agents reach it from other machines. Then it keeps its users between runs, so that credentials
of nodes stay valid. Other commands find it and its credentials by a note (`flotilla_cli.local`).
"""

import asyncio
import contextlib
import dataclasses
import tempfile
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import structlog

from flotilla_cli.local import HOST, ClusterError, NotedBus, absolute_kubeconfig, is_alive, noted_bus
from flotilla_common.settings import Settings
from flotilla_dev.cluster.nats import ANY, NatsServer, start_nats
from flotilla_dev.cluster.ports import free_ports, require_free
from flotilla_dev.cluster.programs import PROGRAMS
from flotilla_dev.cluster.provision import search
from flotilla_dev.cluster.state import default_bus_dir

DEFAULT_PORT = 4222
"""Port of the bus unless another is named."""

LOOK_SECONDS = 1.0
"""Seconds between checks whether the server runs."""


@contextlib.contextmanager
def embedded_bus(settings: Settings, program: Callable[[str], Path] | None = None) -> Generator[Settings]:
    """Run a bus for the time of the block, and yield the settings to reach it. Raises ClusterError."""
    with contextlib.ExitStack() as stack:
        if settings.nats_dir or settings.nats_listen:
            folder = Path(settings.nats_dir) if settings.nats_dir else default_bus_dir()
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flotilla-nats-")))
        host, port = listen_address(settings.nats_listen)
        if port:
            require_free(port, "the bus", "--nats-listen")
        port, monitor = port or free_ports(1)[0], free_ports(1)[0]
        start = partial(
            start_nats, folder.absolute(), port, program=program or find_program, monitor_port=monitor, host=host
        )
        server = stack.enter_context(_kept(start))
        reach = {"nats_url": server.url, "nats_creds": server.credentials, "nats_ca": server.authority}
        stack.enter_context(noted_bus(NotedBus(**reach, kubeconfig=absolute_kubeconfig(settings.kubeconfig))))
        yield dataclasses.replace(settings, **reach)


@contextlib.contextmanager
def _kept(start: Callable[[], Coroutine[Any, Any, NatsServer]]) -> Generator[NatsServer]:
    """Keep a server running for the time of the block. Raises ClusterError if it cannot be started.

    One thread starts, watches and stops it, because the kernel kills it when the thread that started it ends.
    """
    begun: Future[NatsServer] = Future()
    over = threading.Event()

    def keep() -> None:
        try:
            server = asyncio.run(start())
        except BaseException as error:  # noqa: BLE001 - raised where the server is waited for
            begun.set_exception(error)
            return
        begun.set_result(server)
        while not over.wait(LOOK_SECONDS):
            if not is_alive(server.process):
                structlog.get_logger().warning("the embedded bus ended, starting it again")
                try:
                    server = asyncio.run(start())
                except ClusterError as error:
                    structlog.get_logger().warning("the embedded bus cannot be started, trying again", error=str(error))
        server.stop()

    thread = threading.Thread(target=keep, name="embedded bus")
    thread.start()
    try:
        yield begun.result()
    finally:
        over.set()
        thread.join()


def listen_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` (the port is optional); nothing means loopback and any port.

    Raises ClusterError if it is not an address.
    """
    if not text:
        return HOST, 0
    address = urlsplit(f"//{text}")
    try:
        port = address.port or DEFAULT_PORT
    except ValueError as error:
        raise ClusterError(f"--nats-listen must be HOST:PORT, not {text!r}") from error
    return address.hostname or ANY[0], port


def find_program(name: str) -> Path:
    """Return a nats-server of this machine for the embedded bus. Raises ClickException without one."""
    result = search([PROGRAMS[name]])
    if name not in result.found:
        tried = "\n  ".join(result.tried)
        raise click.ClickException(
            f"no {name} for the embedded bus. Name a running one with --nats, or get the programs with `flotilla up`."
            f" Looked at:\n  {tried}"
        )
    return result.found[name]
