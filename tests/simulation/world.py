"""The whole world of one run: apiserver, bus, cluster, Flotilla's processes, and a user.

    def test_something() -> None:
        async def body(world: World) -> None:
            await world.api.create(CLONE_SET, "shop", …)
            await world.settle()
        simulate(body)

Everything in it depends on the seed alone: the same body with the same seed makes the same history, byte for byte.
"""

import asyncio
import dataclasses
import logging
import random
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import Context
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

import msgspec
import structlog

from flotilla_common.api.crds import manifests
from flotilla_common.api.resources import EVENT, LEASE, NAMESPACE, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.installed import mirrored
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.table import VersionsWentBack
from flotilla_common.service import Service, only
from flotilla_common.settings import Settings
from flotilla_insight.services import ON_DEMAND
from flotilla_watcher.app import service as watcher_service
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.apiserver.store import Backup
from tests.simulation.apiserver.webhooks import our_webhooks
from tests.simulation.apiserver.wire import PlainWire, Wire
from tests.simulation.bus.client import SimulatedBus
from tests.simulation.bus.server import Server
from tests.simulation.cluster.cluster import Cluster
from tests.simulation.history import History, Version
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.nodes.agent import agent_of
from tests.simulation.nodes.machine import Machine, PlainSocket, Socket
from tests.simulation.process import Process
from tests.simulation.variable_latency import VariableLatencyBus, VariableLatencyWire

T = TypeVar("T")

REPLICAS = {"watcher": 1, "cloneset": 1}
"""The usual number of processes by service."""

SETTINGS = Settings(lease_duration=3.0, lease_retry_period=0.5, bus_fallback_after=8.0, workers={"cloneset": 4})
"""Shorter times than the defaults, in the same order, so that failures are noticed in few fake seconds.

The fallback has to be longer than the five seconds between two markers. Fewer workers, for there are few CloneSets and
every change wakes all workers.
"""

PROBING = "policy"
"""The service that asks the nodes' agents for probes."""

WEBHOOKS = ("webhook-0", "webhook-1")
"""Replicas of the webhook that answer from within the apiserver, in turns."""

WRITING = frozenset({"topology", "policy"})
"""The services whose objects the webhook writes as well.

With them there are two replicas, which watch. Otherwise one is enough, and it reads its objects each time.
"""

NAMESPACES = (SETTINGS.namespace, SETTINGS.daemon_config_namespace, "default", "shop")
"""Namespaces that exist from the start; scenarios take place in `shop`."""

ANSWER_SECONDS = 10.0
"""Fake seconds until a reply times out."""

USER = "user"
"""The writer of users' changes in scenarios."""

RESTART_SECONDS = 0.5
"""Fake seconds until a process that has ended is started again."""

NODES = 3
"""The number of nodes: `node-1` and so on."""

READY_SECONDS = 30.0
"""Fake seconds in which the processes of an undisturbed world become ready."""

LOOK_SECONDS = 0.1
"""Fake seconds between two checks whether the world is ready or has settled."""

CALM_SECONDS = 2.0
"""Fake seconds without a change after which the world has settled, if all processes run.

It is twice the longest interval at which a process polls.
"""

QUIET_SECONDS = SETTINGS.lease_duration + 2 * SETTINGS.lease_retry_period
"""The same after a crash, a pause or a restart of a process: meanwhile another replica has taken over."""


def services() -> Mapping[str, Callable[[], Service]]:
    """Return the services that can run as a process: all that are installed, but those on demand with a real port.

    The webhook answers from within the apiserver (`apiserver.webhooks`).
    """
    return _services_on(tuple(sys.path))


@cache
def _services_on(path: tuple[str, ...]) -> Mapping[str, Callable[[], Service]]:
    """Return the entry points on this path. Finding them takes a tenth of a run, so it is done once."""
    del path
    points = entry_points(group="flotilla.services")
    return {point.name: point.load() for point in points if point.name not in {"webhook", *ON_DEMAND}}


class Unsettled(Exception):
    """A world that still changes, or is not ready."""


class World:
    """The world of one run (see the module)."""

    def __init__(
        self,
        loop: SimulatedLoop,
        *,
        seed: int = 0,
        replicas: Mapping[str, int] | None = None,
        settings: Settings = SETTINGS,
        wire: Callable[[str], Wire] | None = None,
        skews: Mapping[str, float] | None = None,
        uneven: bool = False,
        socket: Socket | None = None,
    ) -> None:
        self.loop = loop
        self.seed = seed
        self.settings = settings
        self.clock = SimulatedClock(loop)
        self.history = History()
        self.server = ApiServer(self.clock, self.history)
        self.server.streams_lists = seed % 3 != 2  # an older apiserver in a third of the worlds
        self._rng = random.Random(f"{seed} network") if uneven else None
        self.bus = Server(loop, VariableLatencyBus(self._rng) if self._rng else None)
        self.failures: list[tuple[str, BaseException | None]] = []
        self.restored = False
        self._wire = wire
        self._changed = self._upset = 0.0
        self._states: list[object] = []
        self.api = SimulatedApi(self.server, USER, self.wire(USER))
        self.processes: dict[str, Process] = {}
        self.machines: dict[str, Machine] = {}
        self._agents: dict[str, Process] = {}
        self.cluster = Cluster(self.server, wire=self.wire)
        self._services = services()
        self._served = (replicas or REPLICAS).keys() - {AGENT}
        for name, count in (replicas or REPLICAS).items():
            for number in range(count):
                writer = f"{name}-{number}"
                if name == AGENT:
                    process = self._agent(number + 1, socket or PlainSocket())
                else:
                    process = Process(self, writer, self._service(name), skew=(skews or {}).get(writer, 0.0))
                self.processes[process.name] = process
        self.history.listeners.append(self._notice)
        names = WEBHOOKS if WRITING & self._served else WEBHOOKS[:1]
        self.webhooks = our_webhooks(self.server, self._bus_of, settings, {name: self.wire(name) for name in names})
        self.server.admission = self.webhooks

    @property
    def changed(self) -> float:
        """When something else than a lease or an event was last committed, in fake seconds."""
        return self._changed

    def wire(self, writer: str) -> Wire:
        """Return the network between a writer and the apiserver."""
        if self._wire is not None:
            return self._wire(writer)
        return VariableLatencyWire(self.clock, self._rng) if self._rng else PlainWire(self.clock)

    def _bus_of(self, webhook: str) -> Bus:
        return SimulatedBus(self.loop, self.bus, webhook, self.clock, Context())

    def client(self, writer: str, wire: Wire) -> Api:
        """Return an apiserver client for a writer."""
        return SimulatedApi(self.server, writer, wire)

    def failed(self, process: Process, error: BaseException | None) -> None:
        """Record a service that ended by itself: `settle` and the end of the run fail.

        After a restore of etcd that is correct, and the process is started again.
        """
        if self.restored and isinstance(error, Exception) and only(VersionsWentBack, error):
            self.loop.call_later(RESTART_SECONDS, lambda: process.alive or process.start(), context=Context())
        else:
            self.failures.append((process.name, error))

    def restore(self, backup: Backup) -> None:
        """etcd is restored from a backup."""
        self.restored = True
        self.server.store.restore(backup)

    async def begin(self) -> None:
        """Install what an installed Flotilla finds, start the processes, and wait until they are ready."""
        for manifest in manifests():
            self.server.define(manifest)
        for name in NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.api.create(NAMESPACE, "", msgspec.json.encode(body))
        await self.cluster.add_nodes(NODES)
        if WRITING & self._served:
            for replica in self.webhooks.replicas:
                replica.follow(self.loop)
        for process in self.processes.values():
            process.start()
        await self.ready()

    async def ready(self, deadline: float = READY_SECONDS) -> None:
        """Wait until all processes that run are ready. Unsettled."""
        until = self.loop.time() + deadline
        while waiting := {process.name: process.health.waiting for process in self._running() if not process.ready}:
            self._check()
            if self.loop.time() > until:
                raise Unsettled(f"not ready after {deadline:g} s: {waiting}")
            await self.clock.sleep(LOOK_SECONDS)

    async def settle(self, deadline: float = 60.0, quiet: float = CALM_SECONDS) -> None:
        """Wait until nothing but leases and events has changed for `quiet` fake seconds. Raises Unsettled.

        No process may have started or ended for QUIET_SECONDS, either.
        """
        started = self.loop.time()
        while True:
            self._check()
            now = self.loop.time()
            rest = max(max(started, self._changed) + quiet, self._upset + QUIET_SECONDS) - now
            if rest <= 0 and not self.cluster.busy and not any(map(self.at_work, self.machines)):
                return
            if now - started > deadline:
                raise Unsettled(f"still changing after {deadline:g} s: {self.history.versions[-1]}")
            await self.clock.sleep(max(rest, LOOK_SECONDS))

    async def delete(self, resource: Resource, namespace: str, name: str, propagation: str = "Background") -> None:
        """`kubectl delete --cascade=…` by the user."""
        await self.api.delete_with(resource, namespace, name, {"propagationPolicy": propagation})

    def agent(self, node: str) -> Process:
        """Return the agent of a node."""
        return self._agents[node]

    def replicas(self, service: str) -> Iterable[Process]:
        """All processes of a service."""
        return [one for name, one in self.processes.items() if name.rpartition("-")[0] == service]

    async def ask_as(self, node: str, subject: str, body: bytes) -> bytes:
        """Send a request with the rights of a node's agent. Returns the reply; empty without one."""
        name, prefix = f"impostor-{node}", subjects.node_inbox(node)
        bus = SimulatedBus(self.loop, self.bus, name, self.clock, Context(), inbox_prefix=prefix)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while not bus.connected:
                    await self.clock.sleep(LOOK_SECONDS)
            return await bus.request(subject, body, ANSWER_SECONDS)
        except (BusError, TimeoutError):
            return b""
        finally:
            await bus.close()

    def at_work(self, node: str) -> bool:
        """Report whether the node's agent lives, and waits for a reply or has something to pull."""
        agent = self._agents[node]
        if not agent.alive or agent.paused:
            return False
        return agent.bus.asking or self.machines[node].wanted()

    def _agent(self, number: int, socket: Socket) -> Process:
        node = f"node-{number}"
        machine = self.machines[node] = Machine(node, f"{AGENT}-{number}", self.cluster, socket)
        service = agent_of(machine, probes=PROBING in self._served)
        process = Process(self, machine.agent, service, inbox_prefix=subjects.node_inbox(node))
        self._agents[node] = process
        return process

    def _service(self, name: str) -> Service:
        """Return a service as it is installed here.

        If no gate is changed, the watcher publishes only what the others mirror: every resource costs a stream
        that is checked each second.
        """
        if name != "watcher" or self.settings.feature_gates:
            return self._services[name]()
        others = self._served - {name}
        parts = [part for service in others for part in self._services[service]().components]
        return watcher_service(list(mirrored(parts, SETTINGS.gates())))

    def _running(self) -> Iterable[Process]:
        return (process for process in self.processes.values() if process.alive and not process.paused)

    def _notice(self, version: Version) -> None:
        if version.resource not in (LEASE, EVENT):
            self._changed = version.at

    def _check(self) -> None:
        """Check at each poll that no service has ended by itself, and record starts and ends of processes."""
        for name, error in self.failures:
            raise Unsettled(f"{name} ended by itself") from error
        states: list[object] = [(one.incarnation, one.alive, one.paused) for one in self.processes.values()]
        if states != self._states:
            self._upset = self.loop.time() if self._states else 0.0
            self._states = states


def simulate(
    body: Callable[[World], Coroutine[Any, Any, T]],
    *,
    seed: int = 0,
    replicas: Mapping[str, int] | None = None,
    gates: str = "",
    settings: Settings = SETTINGS,
    wire: Callable[[str], Wire] | None = None,
    skews: Mapping[str, float] | None = None,
    shuffle: bool = False,
    socket: Socket | None = None,
) -> T:
    """Make a world, run `body` in it, and leave nothing behind.

    `replicas` are counted by service; `wire` makes the network between a writer and the apiserver; `skews` are seconds
    by process; `socket` is the way between agents and their runtimes. With `shuffle`, the speed of messages and the
    order of simultaneous steps depend on the seed.
    """
    if gates:
        settings = dataclasses.replace(settings, feature_gates=gates)

    async def main(loop: SimulatedLoop) -> T:
        world = World(
            loop,
            seed=seed,
            replicas=replicas,
            settings=settings,
            wire=wire,
            skews=skews,
            uneven=shuffle,
            socket=socket,
        )
        try:
            await world.begin()
            result = await body(world)
        finally:
            world.history.close()
        if world.failures:
            raise Unsettled(f"{world.failures[0][0]} ended by itself") from world.failures[0][1]
        return result

    with _no_logs():
        return run(main, random.Random(f"{seed} order") if shuffle else None)


@contextmanager
def _no_logs() -> Generator[None]:
    """Silence the logs of a world's thousands of services, inside of the context only."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
