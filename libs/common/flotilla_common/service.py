"""Defines a service, and runs one or several of them in a process.

A service is a name and a coroutine that runs until it is cancelled; its `app.py` wires it on one page. This module
gives it a `Context`: settings, apiserver, bus, clock, logs, health. `flotilla run` and the program of each service end
up in `run_process`.
"""

import asyncio
import contextlib
import dataclasses
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import msgspec
import structlog
import uvloop
from prometheus_client import Gauge
from structlog.contextvars import bind_contextvars

from flotilla_common import health, logs
from flotilla_common.api.jsontext import read_as_deep_as_the_apiserver
from flotilla_common.bus import subjects
from flotilla_common.bus.connection import OpenBusError
from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, VERSION
from flotilla_common.bus.interface import Bus
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.permissions import Permissions
from flotilla_common.clock import Clock, Entropy, SystemClock, SystemEntropy
from flotilla_common.control.spec import Component
from flotilla_common.control.watches import AccessRule
from flotilla_common.gates import Gates
from flotilla_common.health import Health, PortTaken
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import ApiConfig, load_config
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.mirror.table import VersionsWentBack
from flotilla_common.settings import Settings, SettingsError, of_command
from flotilla_common.stopping import stop_on_signals
from flotilla_common.tracing.context import Tracer

E = TypeVar("E", bound=Exception)

GC_THRESHOLDS = (50_000, 20, 20)
"""Thresholds of the garbage collector.

Our data has hardly any reference cycles and mirrors hold many objects: the default, a collection after every 700 new
objects, would cost much and free next to nothing.
"""

BUS_CONNECTED = Gauge("flotilla_bus_connected", "1 while a NATS server answers.")

_SETTINGS_HELP: Mapping[type[Exception], str] = {
    PortTaken: "cannot bind a port",
    OpenBusError: "the bus requires no credentials",
}

APISERVER_RETRY_SECONDS = 2.0
"""The pause between two attempts to reach the apiserver."""


@dataclass(kw_only=True, eq=False)
class Context:
    """The environment of a running service."""

    service: str
    settings: Settings
    gates: Gates
    api: Api
    bus: Bus
    clock: Clock
    entropy: Entropy
    health: Health
    replica: str
    tracer: Tracer | None = None
    """Takes the spans of the service if a collector is configured."""
    log: structlog.stdlib.BoundLogger = field(default_factory=structlog.get_logger)
    vitals: dict[str, Callable[[], object]] = field(default_factory=dict[str, Callable[[], object]])
    """Figures for the heartbeat by name: lag, shards held, …"""

    @cached_property
    def holder(self) -> str:
        """Return the name under which this process holds leases.

        The replica's name is not enough: a force-deleted pod of a StatefulSet may still run on a node that is cut off,
        while a new pod has the same name.
        """
        return self.settings.lease_holder or f"{self.replica}-{self.entropy.token()}"

    def started(self) -> None:
        """Report the service itself as ready: from now on its readiness depends on its components."""
        self.health.ready(self.service, ok=True)

    async def server_version(self) -> str:
        """Return the apiserver's gitVersion; retry until it answers."""
        while True:
            try:
                answer = await self.api.raw("GET", "/version")
                self.health.ready("apiserver", ok=True)
                return msgspec.json.decode(answer, type=dict[str, str])["gitVersion"]
            except (ApiError, Unreachable) as error:
                self.health.ready("apiserver", ok=False, why=str(error))
                self.log.warning("the apiserver does not answer", error=str(error))
                await self.clock.sleep(APISERVER_RETRY_SECONDS)

    async def heartbeat(self) -> None:
        """Publish liveness and vitals until cancelled."""
        while True:
            body = {
                "service": self.service,
                "replica": self.replica,
                "version": VERSION,
                "at": self.clock.now(),
                "waiting": self.health.waiting,
                "holder": self.holder,
                "gates": self.gates.changes(),
                "kinds": self.settings.custom_resource_enable,
            }
            body |= {name: figure() for name, figure in self.vitals.items()}
            self.bus.publish_soon(subjects.heartbeat(self.service, self.replica), msgspec.json.encode(body))
            await self.clock.sleep(HEARTBEAT_SECONDS)


class Service(msgspec.Struct, frozen=True):
    """A service by name; `run` works until it is cancelled."""

    name: str
    run: Callable[[Context], Awaitable[None]]
    components: tuple[Component, ...] = ()
    """The components of a service of controllers."""
    access: tuple[AccessRule, ...] = ()
    """The access to the apiserver that it needs."""
    as_users: tuple[AccessRule, ...] = ()
    """The requests that it sends as the users whom it impersonates, where an administrator lets it."""
    permissions: Permissions | None = None
    """The subjects on the bus that it may publish and subscribe to; None: no own ones (node agents)."""
    called: bool = False
    """True if the apiserver calls it: all replicas listen on `webhook_port`."""


async def run_services(services: Sequence[Service], settings: Settings, cluster: ApiConfig | None = None) -> None:
    """Run the services side by side until a stop signal, a failure, or an open bus that settings do not allow.

    `cluster` is the way to the apiserver if the caller has found it already.
    """
    clock, entropy, vital = SystemClock(), SystemEntropy(), Health()
    gates = settings.gates()
    replica = settings.replica
    for service in services:
        vital.ready(service.name, ok=False, why="starting")  # before the first probe
    runners = await health.serve(vital, health_port=settings.health_port, metrics_port=settings.metrics_port)
    async with contextlib.AsyncExitStack() as stack:
        for runner in runners:
            stack.push_async_callback(runner.cleanup)
        contexts: list[Context] = []
        buses: list[NatsBus] = []
        cluster = cluster or await load_config(settings)
        for service in services:
            tracer = _tracer(settings, service.name, replica)
            if tracer is not None:
                stack.push_async_callback(asyncio.to_thread, tracer.close)
            api = KubeClient(cluster, user_agent=f"kruise-manager/{service.name}")
            stack.push_async_callback(api.close)
            bus = NatsBus(settings, name=f"{service.name}/{replica}", clock=clock)
            stack.push_async_callback(bus.close)
            buses.append(bus)
            contexts.append(
                Context(
                    service=service.name,
                    settings=settings,
                    gates=gates,
                    api=api,
                    bus=bus,
                    clock=clock,
                    entropy=entropy,
                    health=vital,
                    replica=replica,
                    tracer=tracer,
                )
            )
        async with asyncio.TaskGroup() as group:
            looking = [group.create_task(bus.refused()) for bus in buses]
            running = [
                group.create_task(run_one(service, context), name=service.name)
                for service, context in zip(services, contexts, strict=True)
            ]
            await asyncio.wait(running)
            for look in looking:
                look.cancel()


def _tracer(settings: Settings, service: str, replica: str) -> Tracer | None:
    if not settings.otlp_endpoint:
        return None
    from flotilla_common.tracing.otlp import OtlpTracer  # noqa: PLC0415 - it takes 12 MiB

    about = {"service.name": f"flotilla-{service}", "service.instance.id": replica, "service.version": VERSION}
    return OtlpTracer.to(settings.otlp_endpoint, about)


async def run_one(service: Service, context: Context) -> None:
    """Run one service and its heartbeat until it is cancelled or fails."""
    bind_contextvars(service=context.service)  # for every line that its tasks log
    BUS_CONNECTED.set_function(lambda: float(context.bus.connected))
    async with asyncio.TaskGroup() as group:
        beat = group.create_task(context.heartbeat())
        try:
            await service.run(context)
        finally:
            beat.cancel()


def run_process(services: Sequence[Service], settings: Settings, cluster: ApiConfig | None = None) -> int:
    """Run the services as this process: logs, signals, event loop. Returns the exit code.

    `cluster` as for `run_services`.
    """
    logs.configure(settings.log_level, settings.log_format)
    read_as_deep_as_the_apiserver()
    if not settings.replica:
        settings = dataclasses.replace(settings, replica=SystemEntropy().token())
    bind_contextvars(service="+".join(service.name for service in services), replica=settings.replica)
    log = structlog.get_logger()

    async def until_stopped() -> None:
        stop_on_signals()
        await run_services(services, settings, cluster)

    gc.freeze()  # modules and types stay until the process ends
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        uvloop.run(until_stopped())
    except asyncio.CancelledError:
        log.info("stopped")
        return 0
    except ConfigError as error:
        log.error("cannot configure access to the cluster", error=str(error))  # noqa: TRY400 - the message names file and field
        return 2
    except (PortTaken, ExceptionGroup) as failure:
        if (known := _for_the_operator(failure)) is not None:
            log.error(known[0], error=known[1])  # noqa: TRY400 - the message says what to change
            return 2
        if (restored := only(VersionsWentBack, failure)) is not None:
            event = "resourceVersions went backwards (etcd restored?), exiting to start with an empty cache"
            log.error(event, error=str(restored))  # noqa: TRY400 - it is no defect
            return 1
        log.error("service failed", exc_info=failure)  # noqa: TRY400 - structlog takes the exception itself
        return 1
    return 0


def only(kind: type[E], failure: Exception) -> E | None:
    """Return the first error of this kind if all errors of the failure are of this kind, else None."""
    if not isinstance(failure, ExceptionGroup):
        return failure if isinstance(failure, kind) else None
    found = [only(kind, one) for one in cast("ExceptionGroup[Exception]", failure).exceptions]
    return found[0] if all(found) else None


def _for_the_operator(failure: Exception) -> tuple[str, str] | None:
    """Return a summary and the message if the failure consists of errors that a setting fixes, else None."""
    known = next(filter(None, (only(kind, failure) for kind in _SETTINGS_HELP)), None)
    return None if known is None else (_SETTINGS_HELP[type(known)], str(known))


def run_alone(service: Service, arguments: Sequence[str] | None = None) -> int:
    """Run a service in its own container, with settings from flags, environment and file."""
    try:
        settings = of_command(sys.argv[1:] if arguments is None else arguments, os.environ)
    except SettingsError as error:
        for problem in error.problems:
            sys.stderr.write(f"error: {problem}\n")
        return 2
    return run_process([service], settings)
