"""The stock client of the bus, `nats`, as docs/bus.md has people set it up."""

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

from flotilla_cli.nats_config import credentials_of
from flotilla_common.bus import readonly
from flotilla_common.bus.permissions import READER
from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.nats import NatsServer
from flotilla_dev.cluster.provision import provide

REFUSED = ("permissions violation", "read-only", "has to be an inbox of this user", "not this user's own")
"""Words of a refusal, by the server or by the watcher."""


class StockClient:
    """`nats` with a context, in a folder of its own."""

    def __init__(self, program: Path, server: NatsServer, folder: Path) -> None:
        self._program = str(program)
        self._env = {**os.environ, "XDG_CONFIG_HOME": str(folder), "NO_COLOR": "1"}
        seed = credentials_of(Path(server.credentials), READER)
        prefixes = ("--js-api-prefix", readonly.PREFIX, "--inbox-prefix", readonly.INBOX)
        self.run("context", "add", "flotilla", "--server", server.url, "--nkey", str(seed), *prefixes, "--select")

    def said(self, *arguments: str, seconds: float = 10) -> tuple[int, str]:
        """Return exit code and output; a command that follows is ended after `seconds`, with code 0."""
        line = [self._program, *arguments]
        process = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._env
        )
        try:
            return process.returncode or 0, process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            process.terminate()
            return 0, process.communicate()[0]
        finally:
            process.wait()

    def run(self, *arguments: str, seconds: float = 10) -> str:
        """Return the output; raises AssertionError if the command fails, or is refused anything."""
        code, text = self.said(*arguments, seconds=seconds)
        assert code == 0, text
        assert not any(word in text.lower() for word in REFUSED), text
        return text

    def refused(self, *arguments: str) -> str:
        """Return the output of a refused command; raises AssertionError if it is not refused."""
        _, text = self.said(*arguments)
        assert any(word in text.lower() for word in REFUSED), (arguments, text)
        return text

    def on_a_terminal(self, arguments: Sequence[str], awaited: str) -> str:
        """Return what the command prints on a terminal, up to the awaited word: some commands require a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [self._program, *arguments], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=self._env
        )
        os.close(theirs)
        text = ""
        try:
            while awaited not in text and (more := os.read(ours, 4096)):
                text += more.decode(errors="replace")
        except OSError:  # it has ended
            pass
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        return text


async def stock_client(server: NatsServer, folder: Path) -> StockClient:
    """Return the client as the read-only user; it is built on first use."""
    program = await provide(["nats"], SystemClock(), say=print)
    return StockClient(program("nats"), server, folder)
