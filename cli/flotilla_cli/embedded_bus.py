"""The bus of `flotilla run` without `--nats`: a nats-server of its own, which ends with the command.

With `--nats-listen` node agents reach it from elsewhere. Then it keeps its users between runs, so that credentials that
were given to nodes go on working.
"""

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import urlsplit

from flotilla_cli.cluster.errors import ClusterError
from flotilla_cli.cluster.layout import default_bus_dir
from flotilla_cli.cluster.nats import ANY, start_nats
from flotilla_cli.cluster.ports import HOST, require_free
from flotilla_common.settings import Settings

DEFAULT_PORT = 4222
"""Where agents look for the bus unless a port is named."""


@contextlib.contextmanager
def embedded_bus(settings: Settings, program: Callable[[str], Path]) -> Generator[Settings]:
    """The settings with which services reach the bus of this block. Raises ClusterError."""
    with contextlib.ExitStack() as stack:
        if settings.nats_dir or settings.nats_listen:
            folder = Path(settings.nats_dir) if settings.nats_dir else default_bus_dir()
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flotilla-nats-")))
        host, port = listen_address(settings.nats_listen)
        if port:
            require_free(port, "the bus", "--nats-listen")
        server = asyncio.run(start_nats(folder.absolute(), port, program=program, bound=True, host=host))
        stack.callback(server.stop)
        yield dataclasses.replace(settings, nats_url=server.url, nats_creds=server.credentials)


def listen_address(text: str) -> tuple[str, int]:
    """`HOST:PORT` (the port may be left out) as host and port; nothing is the loopback address and any port.
    Raises ClusterError when it is no address."""
    if not text:
        return HOST, 0
    address = urlsplit(f"//{text}")
    try:
        port = address.port or DEFAULT_PORT
    except ValueError as error:
        raise ClusterError(f"--nats-listen must be HOST:PORT, not {text!r}") from error
    return address.hostname or ANY[0], port
