"""Ports on the loopback address: chosen by the kernel, or checked before anything is started on them."""

import contextlib
import socket

from flotilla_cli.cluster.errors import ClusterError

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """`count` different ports that nobody listens on. All are held until the last is chosen, so none is given twice."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [one.getsockname()[1] for one in sockets]


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
