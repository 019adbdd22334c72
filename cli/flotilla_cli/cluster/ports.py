"""Ports on the loopback address: chosen, or checked before anything is started on them.

They are chosen below the range from which the kernel takes the ports of outgoing connections. In that range, the port
of a server that is being restarted can be taken meanwhile, even by a client of it that tries to connect.
"""

import contextlib
import socket
from pathlib import Path

from flotilla_cli.cluster.errors import ClusterError
from flotilla_common.clock import Entropy, SystemEntropy

HOST = "127.0.0.1"
LOWEST = 10_000
OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
OUTGOING_DEFAULT = 32_768
"""Where outgoing ports begin on Linux, where the kernel does not say."""

TRIES = 1000
"""Ports looked at before giving up: with half of them taken, that many in a row are never taken."""


def free_ports(count: int, entropy: Entropy | None = None) -> list[int]:
    """`count` different ports that nobody listens on. All are held until the last is chosen, so none is given twice."""
    dice, highest = entropy or SystemEntropy(), _outgoing() - 1
    chosen: list[int] = []
    with contextlib.ExitStack() as stack:
        for _ in range(TRIES):
            if len(chosen) == count:
                return chosen
            port = int(dice.uniform(LOWEST, highest))
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind((HOST, port))
                chosen.append(port)
    raise ClusterError(f"There are no {count} free ports between {LOWEST} and {highest}.")


def _outgoing() -> int:
    """The first port of outgoing connections."""
    try:
        first = int(OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return OUTGOING_DEFAULT
    return first if first > LOWEST + TRIES else OUTGOING_DEFAULT


def is_free(port: int) -> bool:
    """Whether a program could listen on this port now."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: TIME_WAIT does not count
        try:
            one.bind((HOST, port))
        except OSError:
            return False
        return True


def require_free(port: int, purpose: str, option: str) -> None:
    """Raise when a port named by the user is taken."""
    if not is_free(port):
        raise ClusterError(
            f"Port {port} for {purpose} is taken by another process. Name another one with {option}, or leave the "
            "option out: then a free port is chosen."
        )
