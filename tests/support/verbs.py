"""`flotilla` as users run it, in one namespace: `get`, `explain`, `history`, `bundle`, `replay` and the others."""

import subprocess
import sys
from pathlib import Path

from tests.support.broker import environment
from tests.support.fleet import Fleet
from tests.support.workspace import Workspace


class Verbs:
    """The command, in one namespace."""

    def __init__(self, space: Workspace, services: Fleet) -> None:
        self._bus = ["-n", space.name, f"--nats={services.nats.url}"]
        self._cluster = f"--kubeconfig={space.cluster.kubeconfig}"
        self._env = environment(services.nats)

    def run(self, *words: str, stdin: str = "", codes: tuple[int, ...] = (0,)) -> str:
        """Run the command and return its output; any other exit code fails the test."""
        where = {"bundle": self._bus, "replay": [], "tail": self._bus}.get(words[0], [*self._bus, self._cluster])
        line = [sys.executable, "-m", "flotilla_cli", *words, *where]
        reply = subprocess.run(
            line, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=self._env
        )
        assert reply.returncode in codes, reply.stdout + reply.stderr
        return reply.stdout

    def replayed(self, folder: Path, kind: str, name: str) -> str:
        """Bundle an object and return what `flotilla replay` prints for it."""
        bundle = str(folder / f"{name}.jsonl")
        self.run("bundle", kind, name, "-o", bundle)
        return self.run("replay", bundle)
