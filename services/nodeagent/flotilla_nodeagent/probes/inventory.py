"""The containers of the node's pods, shared by all probes: one list serves the rounds of half a second.

Constant properties of a container and of a pod's sandbox are read once: the start time, and the IPs.
"""

import asyncio
from collections.abc import Iterable

from flotilla_common.clock import Clock
from flotilla_nodeagent.cri.errors import CriError
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.cri.types import POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL, Container, newest
from flotilla_nodeagent.probes.definitions import Probe

LIST_SECONDS = 0.5
"""Maximum age in seconds of a list that a round begins with."""

PAUSE_SECONDS = 0.5
"""Pause after a failed list."""


class Inventory:
    """The containers and pods of the primary runtime. All methods raise CriError."""

    def __init__(self, runtimes: Runtimes, clock: Clock) -> None:
        self._runtimes = runtimes
        self._clock = clock
        self._by_pod: dict[str, dict[str, Container]] = {}  # the newest ones, by the pod's uid and their names
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[None] | None = None
        self._failure: tuple[float, CriError] | None = None
        self._started: dict[str, float] = {}  # by container
        self._ips: dict[str, tuple[str, ...]] = {}  # by sandbox

    @property
    def runtime(self) -> Runtime:
        """Return the runtime that commands are run with."""
        return self._runtimes.primary()

    async def find(self, probe: Probe) -> Container | None:
        """Return the probe's newest container, by a list that is half a second old at most."""
        if self._clock.monotonic() - self._listed_at > LIST_SECONDS:
            await self._refresh()
        return _of(probe, self._by_pod.get(probe.uid, {}))

    async def read(self, probe: Probe) -> Container | None:
        """Return the probe's newest container from a fresh list."""
        return _of(probe, newest(await self.runtime.containers(probe.uid)))

    async def started(self, container: Container) -> float:
        """Return when a running container was started, in seconds since the epoch."""
        if container.id not in self._started:
            self._started[container.id] = await self.runtime.started_at(container.id)
        return self._started[container.id]

    async def ips(self, container: Container) -> tuple[str, ...]:
        """Return the IPs of the container's pod; none for a pod in the node's network."""
        if container.sandbox not in self._ips:
            self._ips[container.sandbox] = await self.runtime.sandbox_ips(container.sandbox)
        return self._ips[container.sandbox]

    async def _refresh(self) -> None:
        """List the containers; concurrent callers share one call."""
        if self._failure is not None and self._clock.monotonic() - self._failure[0] < PAUSE_SECONDS:
            raise self._failure[1]
        if self._listing is None or self._listing.done():
            self._listing = asyncio.get_running_loop().create_task(self._list())
        await asyncio.shield(self._listing)
        if self._failure is not None:
            raise self._failure[1]

    async def _list(self) -> None:
        begun = self._clock.monotonic()
        try:
            listed = await self.runtime.all_containers()
        except CriError as error:
            self._failure = self._clock.monotonic(), error
            return
        self._failure = None
        self._by_pod = _by_pod(listed)
        self._listed_at = begun
        containers, sandboxes = {each.id for each in listed}, {each.sandbox for each in listed}
        self._started = {container: at for container, at in self._started.items() if container in containers}
        self._ips = {sandbox: ips for sandbox, ips in self._ips.items() if sandbox in sandboxes}


def _by_pod(containers: Iterable[Container]) -> dict[str, dict[str, Container]]:
    of_pod: dict[str, list[Container]] = {}
    for container in containers:
        of_pod.setdefault(container.labels.get(POD_UID_LABEL, ""), []).append(container)
    return {uid: newest(listed) for uid, listed in of_pod.items()}


def _of(probe: Probe, containers: dict[str, Container]) -> Container | None:
    """Return the container that the probe names, if it belongs to the pod that the probe names."""
    # A NodePodProbe could name the container of another pod.
    container = containers.get(probe.container)
    if container is None:
        return None
    named = container.labels.get(POD_NAMESPACE_LABEL, probe.namespace), container.labels.get(POD_NAME_LABEL, probe.pod)
    return container if named == (probe.namespace, probe.pod) else None
