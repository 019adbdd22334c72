"""/healthz, /readyz and /metrics on plain streams: a web framework would take a third of the agent's memory."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from prometheus_client import CONTENT_TYPE_LATEST, disable_created_metrics, generate_latest

REQUEST_LIMIT = 16 << 10
"""Size limit of a request in bytes; a scrape sends some hundred."""

REQUEST_SECONDS = 5.0
"""Timeout for a client to send its request."""


class PortTaken(OSError):
    """A port cannot be bound; the message names it and its purpose."""


class Status:
    """Readiness of the parts of the agent."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[bool, str]] = {}

    def ready(self, name: str, ok: bool, why: str = "") -> None:
        """Set whether the part is ready; `why` it is not, or a remark about a ready one."""
        self._parts[name] = (ok, why)

    @property
    def waiting(self) -> dict[str, str]:
        """Parts that are not ready, and why."""
        return {name: why for name, (ok, why) in self._parts.items() if not ok}

    def report(self) -> str:
        """Return one line per part, as /readyz shows it."""
        lines = [f"[{'+' if ok else '-'}]{name} {why or 'ok'}" for name, (ok, why) in sorted(self._parts.items())]
        return "\n".join(lines) + "\n"


@contextlib.asynccontextmanager
async def serve(status: Status, ports: set[int], host: str = "") -> AsyncGenerator[None]:
    """Serve all three on each of the ports (0 is skipped) until the context ends. Raises PortTaken."""
    disable_created_metrics()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(status, head.split(b" ", 2)[1].decode("latin-1")))
                await writer.drain()
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError, TimeoutError):
            return  # not a request
        finally:
            writer.close()

    async with contextlib.AsyncExitStack() as stack:
        for port in sorted(ports - {0}):
            try:
                server = await asyncio.start_server(answer, host or None, port, limit=REQUEST_LIMIT)
            except OSError as failure:
                raise PortTaken(f"port {port} for /healthz, /readyz and /metrics: {failure.strerror}") from failure
            stack.push_async_exit(server)
        yield


def _response(status: Status, target: str) -> bytes:
    kind = "text/plain; charset=utf-8"
    match target.partition("?")[0]:
        case "/healthz":
            line, body = "200 OK", b"ok\n"
        case "/readyz":
            line, body = ("503 Service Unavailable" if status.waiting else "200 OK"), status.report().encode()
        case "/metrics":
            line, body, kind = "200 OK", generate_latest(), CONTENT_TYPE_LATEST
        case _:
            line, body = "404 Not Found", b"not found\n"
    head = f"HTTP/1.1 {line}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
