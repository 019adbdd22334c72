"""Runs one round of one probe: a command in the container, a request or a connection to the pod (nodeagent.md §6.3).

Requests and connections go only to the pod's own IP, by the container runtime. A pod in the node's network has no IP of
its own in the runtime. Its IP is the node's, so the requested one must belong to this machine or, for an agent in a
network of its own, be listed as the node's in the settings. Loopback addresses are refused, since they are never a
pod's IP.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from ipaddress import IPv6Address, ip_address

from flotilla_common.clock import Clock
from flotilla_nodeagent.cri.errors import TimedOut
from flotilla_nodeagent.cri.runtime import CALL_SECONDS, Runtime
from flotilla_nodeagent.cri.types import Container
from flotilla_nodeagent.http_client import InvalidResponse, probe, target
from flotilla_nodeagent.probes.definitions import Exec, Handler, HttpGet, Impossible, ProbeRejected, TcpSocket
from flotilla_nodeagent.probes.states import Outcome

OUTPUT_LIMIT = 10 << 10
"""Limit of the bytes of a command's output that are kept."""

LATE_SECONDS = 1.0
"""A timeout noticed later than this is not the pod's fault: this process or its machine stood still."""

_TIMEOUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


def is_own_address(ip: str) -> bool:
    """Report whether this machine has the address: only then can a socket be bound to it."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as unconnected:
            unconnected.bind((ip, 0))
    except OSError:
        return False
    return True


def addresses_of_node(listed: str) -> Callable[[str], bool]:
    """Return a predicate for the node's addresses: those of this list, separated by commas, and of this machine."""
    addresses = frozenset(str(ip_address(item.strip())) for item in listed.split(",") if item.strip())
    return lambda ip: ip in addresses or is_own_address(ip)


def pod_address(asked: str, known: Sequence[str], is_own: Callable[[str], bool]) -> str:
    """Return the IP to connect to. Raises ProbeRejected, Impossible.

    `asked` is the IP in the NodePodProbe, empty if it was not known at that time; `known` are the pod's IPs in the
    runtime, none for a pod in the node's network.
    """
    if not asked:
        if not known:
            raise Impossible("the pod's IP is not known yet")
        return known[0]
    try:
        address = ip_address(asked)
    except ValueError as error:
        raise ProbeRejected(f"{asked[:64]!r} is not an IP") from error
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    if mapped or address.is_loopback or address.is_unspecified or address.is_multicast or "%" in asked:
        raise ProbeRejected(f"{asked[:64]} is not the IP of a pod")
    if any(address == ip_address(ip) for ip in known):
        return str(address)
    if known or not is_own(str(address)):
        raise ProbeRejected(f"{address} is not an IP of the pod")
    return str(address)


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
        return await probe(ip, action)
    except (OSError, InvalidResponse) as error:
        why = str(error) if isinstance(error, InvalidResponse) else _dialling(ip, action.port, error)
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
