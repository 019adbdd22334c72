"""A shell of a user with a production cluster, to prove that code does not touch it.

Everything in it leads to a listener that must not be called, and to programs that must not be run.
"""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

NAMES = ("kubectl", "nats-server", "helm", "etcd", "kube-apiserver", "docker")
PROGRAM = """\
#!/bin/sh
echo "$0 $*" >> {calls}
echo v99.0.0
"""


class Trap:
    """The calls that were made, and the environment that leads to them."""

    def __init__(self, folder: Path, port: int) -> None:
        self._calls = folder / "calls"
        self._calls.touch()
        self.home = folder / "home"
        self.programs = folder / "bin"
        address = f"127.0.0.1:{port}"
        config = self.home / ".kube" / "config"
        config.parent.mkdir(parents=True)
        config.write_bytes(msgspec.json.encode(kubeconfig(f"http://{address}")))
        self.programs.mkdir()
        for name in NAMES:
            (self.programs / name).write_text(PROGRAM.format(calls=self._calls), encoding="utf-8")
            (self.programs / name).chmod(0o755)
        self.environment = {
            "HOME": str(self.home),
            "KUBECONFIG": str(config),
            "FLOTILLA_KUBECONFIG": str(config),
            "FLOTILLA_CONTEXT": "production",
            "FLOTILLA_NATS": f"nats://{address}",
            "FLOTILLA_NATS_URL": f"nats://{address}",
            "NATS_URL": f"nats://{address}",
            "HELM_KUBEAPISERVER": f"http://{address}",
            "DOCKER_HOST": f"tcp://{address}",
        }
        """Environment of a shell without any other setting of ours."""

    def called(self, by: str) -> None:
        """Note that something was touched."""
        with self._calls.open("a", encoding="utf-8") as calls:
            calls.write(f"{by}\n")

    @property
    def calls(self) -> list[str]:
        """Return the callees."""
        return self._calls.read_text(encoding="utf-8").splitlines()


def kubeconfig(server: str) -> dict[str, object]:
    """Return a kubeconfig with one cluster, which is called production."""
    name = "production"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": {"token": "secret"}}],
    }


@contextmanager
def trap(folder: Path) -> Generator[Trap]:
    """Set a trap for the time of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Trap(folder, listener.getsockname()[1])
        watcher = threading.Thread(target=_listen, args=(listener, made))
        watcher.start()
        try:
            yield made
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            watcher.join()


def _listen(listener: socket.socket, made: Trap) -> None:
    """Record calls until the listener is shut down."""
    while True:
        try:
            caller, _ = listener.accept()
        except OSError:
            return
        with caller:
            caller.settimeout(1)
            made.called(f"the listener, with {caller.recv(200)!r}")
