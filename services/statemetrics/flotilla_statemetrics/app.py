"""The program of the state metrics service: the resources that it mirrors, and the page that it serves.

It writes nothing and holds no lease: each replica serves all metrics, so one is enough. The metrics of the process
itself are on the usual page of every service.
"""

import asyncio
from functools import partial

from aiohttp import web

from flotilla_common.bus.permissions import mirror_permissions
from flotilla_common.control.spec import read_rules
from flotilla_common.health import listen
from flotilla_common.kube.discovery import until_installed
from flotilla_common.mirror.decoder import Undecodable
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.service import Context, Service, run_alone
from flotilla_statemetrics.exposition import Page
from flotilla_statemetrics.families import AnyKind
from flotilla_statemetrics.kinds.broadcastjobs import BROADCAST_JOBS
from flotilla_statemetrics.kinds.clonesets import CLONE_SETS
from flotilla_statemetrics.kinds.daemonsets import DAEMON_SETS
from flotilla_statemetrics.kinds.sidecarsets import SIDECAR_SETS
from flotilla_statemetrics.kinds.statefulsets import ADVANCED_STATEFUL_SETS, STATEFUL_SETS
from flotilla_statemetrics.kinds.workloadspreads import WORKLOAD_SPREADS

NAME = "statemetrics"

KINDS: tuple[AnyKind, ...] = (
    CLONE_SETS,
    STATEFUL_SETS,
    ADVANCED_STATEFUL_SETS,
    DAEMON_SETS,
    SIDECAR_SETS,
    BROADCAST_JOBS,
    WORKLOAD_SPREADS,
)

RESOURCES = tuple(dict.fromkeys(kind.resource for kind in KINDS))
"""The resources that the service reads."""


async def run(context: Context) -> None:
    """Serve the metrics until cancelled. Raises PortTaken, and VersionsWentBack (in a group) when etcd was restored."""
    mirror = Mirror(
        api=context.api,
        bus=context.bus,
        clock=context.clock,
        health=context.health,
        fallback_after=context.settings.bus_fallback_after,
    )
    page = Page(mirror, KINDS, context.clock)
    context.vitals["lag"] = lambda: round(max(map(mirror.lag, mirror.resources)), 1)
    context.vitals["direct"] = lambda: [one.id for one in mirror.resources if mirror.is_direct(one)]
    runner = await listen([web.get("/metrics", page.answer)], context.settings.state_metrics_port)
    try:
        for resource in RESOURCES:
            mirror.on_undecodable(resource, partial(_note, context))
            waiting = partial(context.health.ready, context.service, False)
            await until_installed(context.api, context.clock, resource, waiting)
        async with asyncio.TaskGroup() as group:
            group.create_task(mirror.run())
            await mirror.synced()
            page.synced = True
            context.started()
    finally:
        await runner.cleanup()


def _note(context: Context, undecodable: Undecodable) -> None:
    name = f"{undecodable.namespace}/{undecodable.name}"
    context.log.warning("undecodable object", object=name, kind=undecodable.resource.kind, error=undecodable.error)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return Service(NAME, run, access=read_rules(RESOURCES), permissions=mirror_permissions(NAME, RESOURCES))


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
