"""Runs one round of one probe: a command in the container, a request or a connection to the pod (nodeagent.md §6.3)."""

import asyncio
import os
import socket
import ssl
from collections.abc import Coroutine

from flotilla_common.clock import Clock
from flotilla_nodeagent.cri.errors import TimedOut
from flotilla_nodeagent.cri.runtime import CALL_SECONDS, Runtime
from flotilla_nodeagent.cri.types import Container
from flotilla_nodeagent.probes import http
from flotilla_nodeagent.probes.definitions import Exec, Handler, HttpGet, Impossible, TcpSocket
from flotilla_nodeagent.probes.states import Outcome
from flotilla_nodeagent.stopping.http import target

OUTPUT_LIMIT = 10 << 10
"""Limit of the bytes of a command's output that are kept."""

LATE_SECONDS = 1.0
"""A timeout noticed later than this is not the pod's fault: this process or its machine stood still."""


async def run(
    handler: Handler, *, container: Container, ip: str, timeout: int, runtime: Runtime, clock: Clock
) -> Outcome:
    """Run the round and return its outcome.

    `ip` is the pod's, checked by the caller; exec does not use it. Raises CriError when the runtime could not run a
    command, Impossible when the outcome is unknown.
    """
    match handler:
        case Exec():
            return await _execute(handler, container, timeout, runtime, clock)
        case HttpGet():
            return await _in_time(_http(ip, handler), timeout, clock, _http_error(ip, handler, _TIMEOUT))
        case TcpSocket():
            where = f"dial tcp {_address(ip, handler.port)}"
            return await _in_time(_tcp(ip, handler.port), timeout, clock, f"{where}: i/o timeout")


_TIMEOUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


async def _execute(handler: Exec, container: Container, timeout: int, runtime: Runtime, clock: Clock) -> Outcome:
    started = clock.monotonic()
    try:
        done = await runtime.execute(container.id, list(handler.command), keep=OUTPUT_LIMIT, seconds=timeout)
    except TimedOut as error:
        if clock.monotonic() - started > timeout + CALL_SECONDS + LATE_SECONDS:
            raise Impossible("the agent was stalled") from error
        return Outcome(False, str(error).replace(container.id, container.name))
    output = done.stdout if done.exit_code == 0 else done.stderr
    return Outcome(done.exit_code == 0, output.decode(errors="replace"))


async def _in_time(running: Coroutine[None, None, Outcome], timeout: int, clock: Clock, message: str) -> Outcome:
    """Return the outcome, or a failure with the message when it times out."""
    started = clock.monotonic()
    try:
        async with asyncio.timeout(timeout):
            return await running
    except TimeoutError as error:
        if clock.monotonic() - started > timeout + LATE_SECONDS:
            raise Impossible("the agent was stalled") from error
        return Outcome(False, message)


async def _http(ip: str, action: HttpGet) -> Outcome:
    try:
        return await http.probe(ip, action)
    except (OSError, http.Broken) as error:
        why = str(error) if isinstance(error, http.Broken) else _dialling(ip, action.port, error)
        return Outcome(False, _http_error(ip, action, why))


async def _tcp(ip: str, port: int) -> Outcome:
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connection, (ip, port))
        except OSError as error:
            return Outcome(False, _dialling(ip, port, error))
    return Outcome(True)


def _http_error(ip: str, action: HttpGet, why: str) -> str:
    """Return the error as Go's client phrases it, as in the kubelet's probes."""
    scheme = "https" if action.secure else "http"
    return f'Get "{scheme}://{_address(ip, action.port)}{target(action.path)}": {why}'


def _dialling(ip: str, port: int, error: OSError) -> str:
    if isinstance(error, ssl.SSLError) or not error.errno:
        return str(error) or type(error).__name__
    why = os.strerror(error.errno).lower()
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return f"read tcp {_address(ip, port)}: {why}"
    return f"dial tcp {_address(ip, port)}: connect: {why}"


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
