"""Finds the node's container runtimes, checks them, and searches again when none answers.

A node without a runtime is a state, not a crash: the agent reports it on /readyz and searches again. A runtime that
worked once stays known while it restarts, and its channel reconnects by itself. On a node itself the sockets are those
below. In a container the host's directories are mounted elsewhere, under the setting `host-root`. Directories are
mounted, never the sockets, which are created again when a runtime restarts (cri.md §8).
"""

from collections.abc import Callable
from pathlib import Path

import structlog

from flotilla_common.clock import Clock
from flotilla_nodeagent.cri.errors import CriError, Unavailable
from flotilla_nodeagent.cri.runtime import Runtime

CANDIDATES = (
    "/run/containerd/containerd.sock",
    "/run/containerd.sock",
    "/run/crio/crio.sock",
    "/run/crio.sock",
    "/run/cri-dockerd.sock",
    "/run/cri-dockerd/cri-dockerd.sock",
    "/run/k3s/containerd/containerd.sock",  # k3s and rke2
    "/run/k3s/cri-dockerd/cri-dockerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
)
"""Sockets in the order of preference where several answer.

A distribution's own socket exists only where it is used, but cri-dockerd often has an unused containerd beside it,
which is why the kubelet's own runtime is preferred.
"""

CHECK_SECONDS = 2.0
"""Interval of checks: a runtime may appear or disappear. Requesting its version costs next to nothing."""

Report = Callable[[bool, str], None]
"""Called with whether a runtime answers, and a sentence about it."""


def candidates(override: str, host_root: str = "") -> list[str]:
    """Return the sockets to try: the override, else all that exist, most likely ones first.

    A relative override is under /run, as in the reference's `--socket-file`.
    """
    if override:
        path = override.removeprefix("unix://")
        return [_on_host(path if path.startswith("/") else f"/run/{path}", host_root)]
    return [path for path in (_on_host(socket, host_root) for socket in CANDIDATES) if Path(path).is_socket()]


def _on_host(path: str, host_root: str) -> str:
    return f"{host_root.rstrip('/')}{path}"


class Runtimes:
    """All runtimes that have answered on this node."""

    def __init__(
        self,
        clock: Clock,
        report: Report,
        *,
        override: str = "",
        host_root: str = "",
        connect: Callable[[str], Runtime] = Runtime,
    ) -> None:
        self._clock = clock
        self._report = report
        self._override = override
        self._host_root = host_root
        self._connect = connect
        self._known: dict[str, Runtime] = {}  # by path
        self._answering: dict[str, Runtime] = {}  # in order of preference
        self._log = structlog.get_logger()

    def named(self, name: str) -> Runtime | None:
        """Return the runtime whose container IDs have this prefix, or None."""
        matching = [runtime for runtime in (*self._answering.values(), *self._known.values()) if runtime.name == name]
        return matching[0] if matching else None

    def primary(self) -> Runtime:
        """Return the kubelet's runtime, which pulls images. Raises Unavailable when no runtime answers."""
        runtime = next(iter(self._answering.values()), None) or next(iter(self._known.values()), None)
        if runtime is None:
            raise Unavailable("no container runtime answers on this node")
        return runtime

    async def run(self) -> None:
        """Check for runtimes until cancelled."""
        while True:
            await self.check_all()
            await self._clock.sleep(CHECK_SECONDS)

    async def check_all(self) -> None:
        """Try every candidate once."""
        paths = candidates(self._override, self._host_root)
        troubles = {path: await self._try(path) for path in paths}
        self._answering = {path: self._known[path] for path, trouble in troubles.items() if not trouble}
        if len(self._answering) > 1:
            await self._prefer_the_kubelets()
        self._report_state([f"{path}: {trouble}" for path, trouble in troubles.items() if trouble])

    def close(self) -> None:
        """Close all sockets."""
        for runtime in self._known.values():
            runtime.close()

    async def _try(self, path: str) -> str:
        """Return why the runtime cannot be used, or "" if it can."""
        runtime = self._known.get(path) or self._connect(path)
        try:
            await (runtime.check() if path in self._known else runtime.probe())
        except CriError as error:
            if path not in self._known:
                runtime.close()
            return str(error)
        if path not in self._known:
            self._log.info("container runtime", socket=path, runtime=runtime.name, version=runtime.version)
            self._known[path] = runtime
        return ""

    async def _prefer_the_kubelets(self) -> None:
        """Move the runtime that holds pods to the front."""
        # Beside cri-dockerd there is often an unused containerd.
        for path, runtime in list(self._answering.items()):
            try:
                used = await runtime.holds_pods()
            except CriError:
                continue  # it went away; the next check will find it gone
            if used:
                self._answering = {path: runtime} | self._answering
                return

    def _report_state(self, troubles: list[str]) -> None:
        if self._answering:
            answering = self._answering.values()
            self._report(
                True, ", ".join(f"{runtime.name} {runtime.version} at {runtime.path}" for runtime in answering)
            )
        elif troubles:
            self._report(False, "no container runtime works: " + "; ".join(troubles))
        else:
            self._report(False, "no container runtime found; looked for " + ", ".join(CANDIDATES))
