"""Chooses free ports on the loopback address, checks given ones, and probes the servers that listen.

Ports are chosen below the range from which the kernel takes the ports of outgoing connections. In that range, the port
of a server that is being restarted can be taken meanwhile, even by its own client that reconnects.

Seconds may pass between the choice and the start of a server, and a restarting server is away for a while. So no two
processes choose from the same ports: each claims blocks of them by names in the kernel (abstract sockets), which are
released when the process ends, however it ends.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import aiohttp

from flotilla_cli.local import ClusterError
from flotilla_common.clock import SystemEntropy

HOST = "127.0.0.1"
LOWEST = 10_000
BLOCK = 64
"""Ports claimed at a time: a control plane with its services takes about twenty."""

OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
OUTGOING_DEFAULT = 32_768
"""First port of outgoing connections on Linux, if the kernel does not report it."""

PROBE = aiohttp.ClientTimeout(total=2)


def free_ports(count: int) -> list[int]:
    """Return `count` different ports without a listener.

    Each is returned once, and to no other process while this one lives. Raises ClusterError if none are left.
    """
    return [next(_claimed()) for _ in range(count)]


@cache
def _claimed() -> Iterator[int]:
    """Return the iterator over this process's ports, always the same one."""
    first, last = LOWEST // BLOCK + 1, _outgoing() // BLOCK - 1
    start = int(SystemEntropy().uniform(first, last + 1))
    with contextlib.ExitStack() as claims:
        for block in (*range(start, last + 1), *range(first, start)):
            name = claims.enter_context(socket.socket(socket.AF_UNIX))
            try:
                name.bind(f"\0flotilla-ports-{block}")
            except OSError:
                continue  # another process has claimed them
            yield from filter(partial(is_free, lingering=False), range(block * BLOCK, (block + 1) * BLOCK))
    raise ClusterError(f"There are no free ports left between {LOWEST} and {_outgoing()}.")


def _outgoing() -> int:
    """Return the first port of outgoing connections."""
    try:
        first = int(OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return OUTGOING_DEFAULT
    return first if first > LOWEST + 16 * BLOCK else OUTGOING_DEFAULT


def is_free(port: int, *, lingering: bool = True) -> bool:
    """Report whether a server could listen on this port now, also if connections linger (TIME_WAIT)."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, lingering)
        try:
            one.bind((HOST, port))
        except OSError:
            return False
        return True


def require_free(port: int, purpose: str, option: str) -> None:
    """Raise ClusterError if a port that the user named is taken."""
    if not is_free(port):
        raise ClusterError(
            f"Port {port} for {purpose} is taken by another process. Name another one with {option}, or leave the "
            "option out: then a free port is chosen."
        )


async def serves(url: str) -> bool:
    """Return whether the server answers 200 here."""
    try:
        async with aiohttp.ClientSession(timeout=PROBE) as session, session.get(url) as reply:
            return reply.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


async def listens(host: str, port: int) -> bool:
    """Return whether a server listens at this address."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), timeout=1)
    except OSError:
        return False
    writer.close()
    return True


async def not_ready(host: str, port: int) -> str:
    """Return what our process at this address waits for, as its /readyz says; empty when it is ready."""
    url = f"http://{host}:{port}/readyz"
    try:
        async with aiohttp.ClientSession(timeout=PROBE) as session, session.get(url) as reply:
            lines = (await reply.text()).splitlines()
    except (aiohttp.ClientError, TimeoutError) as error:
        return f"no answer ({type(error).__name__})"
    if reply.status == 200:
        return ""
    return "; ".join(line.removeprefix("[-]") for line in lines if line.startswith("[-]")) or "not ready"
