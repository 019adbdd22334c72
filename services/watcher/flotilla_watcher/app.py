"""The watcher: publishes resources, each on the one replica that holds its lease.

Replicas share the leases evenly; a resource moves to another replica when its holder is silent for a lease duration, or
when a new replica has less than its share. The holder of the first one also keeps the gaps in the records of all
services small. When etcd was restored from a backup, the watcher announces it on the
streams and starts again as another process.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from flotilla_common.api.resources import TOKEN_REVIEW, Resource
from flotilla_common.bus.permissions import publisher_permissions
from flotilla_common.bus.subjects import RECORDS
from flotilla_common.control.leases import LeaseTerms
from flotilla_common.control.shards import Shards
from flotilla_common.control.spec import LEASES, read_rules
from flotilla_common.control.watches import AccessRule
from flotilla_common.installed import published
from flotilla_common.mirror.table import VersionsWentBack
from flotilla_common.node.reports import FOLLOW
from flotilla_common.service import Context, Service, run_alone
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.node_logins import serve_node_logins
from flotilla_watcher.old_records import OldRecords
from flotilla_watcher.readers import serve_node_readers, serve_readonly
from flotilla_watcher.resource_watch import ResourceWatch
from flotilla_watcher.version_lineage import begin_lineage

POLL_SECONDS = 0.25
"""Interval of comparing the held leases with the running watches."""


async def run(context: Context, resources: Sequence[Resource]) -> None:
    """Publish the resources whose leases this replica holds, until cancelled.

    Raises VersionsWentBack (in a group) when etcd was restored.
    """
    settings = context.settings
    shards = Shards(
        api=context.api,
        clock=context.clock,
        service=context.service,
        namespace=settings.namespace,
        identity=context.holder,
        names=[lease_name(resource) for resource in resources],
        terms=LeaseTerms(settings.lease_duration, settings.lease_retry_period),
    )
    copies: dict[Resource, NodeCopies] = {}
    running: dict[int, asyncio.Task[None]] = {}
    answering = [await serve_node_readers(context.bus, copies), *await serve_node_logins(context)]
    answering.append(await serve_readonly(context.bus, context.clock))
    context.started()
    context.vitals["resources"] = lambda: [resources[index].id for index in sorted(shards.serving)]
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(shards.run())
            group.create_task(follow_leases(context, shards, resources, copies, running))
            group.create_task(_old_records(context, resources, partial(shards.serves, 0)).run())
    except* VersionsWentBack:
        await begin_lineage(context.bus, context.entropy, [resources[index] for index in sorted(running)])
        raise
    finally:
        for served in answering:
            await served.stop()


async def follow_leases(
    context: Context,
    shards: Shards,
    resources: Sequence[Resource],
    copies: dict[Resource, NodeCopies],
    running: dict[int, asyncio.Task[None]],
) -> None:
    """Run a watch for every held lease, and for no other.

    `copies` are the copies that this replica publishes for nodes; `running` are the watches, by the number of the
    resource.
    """
    async with asyncio.TaskGroup() as group:
        while True:
            serving = shards.serving
            for index in [index for index in running if index not in serving]:
                running.pop(index).cancel()
                context.health.ready(resources[index].id, True)
            for index in serving - running.keys():
                fence = partial(shards.serves, index)
                running[index] = group.create_task(_watch(context, resources[index], fence, copies))
            await context.clock.sleep(POLL_SECONDS)


def _old_records(context: Context, resources: Sequence[Resource], fence: Callable[[], bool]) -> OldRecords:
    return OldRecords(bus=context.bus, clock=context.clock, streams=RECORDS, resources=resources, fence=fence)


def lease_name(resource: Resource) -> str:
    """Return the part of the lease's name that identifies the resource."""
    return f"{resource.plural}.{resource.group or 'core'}"


async def _watch(
    context: Context, resource: Resource, fence: Callable[[], bool], copies: dict[Resource, NodeCopies]
) -> None:
    def report(trouble: str) -> None:
        context.health.ready(resource.id, not trouble, trouble)

    report("starting")
    await ResourceWatch(
        api=context.api,
        bus=context.bus,
        clock=context.clock,
        entropy=context.entropy,
        resource=resource,
        max_payload=context.settings.bus_max_payload,
        fence=fence,
        report=report,
        copies=copies,
        tracer=context.tracer,
    ).run()


def service(resources: Sequence[Resource] | None = None) -> Service:
    """Return the service, for `flotilla run` and for its own process; by default it publishes all resources."""
    wanted = published() if resources is None else resources
    return Service(
        "watcher",
        partial(run, resources=wanted),
        access=(
            *read_rules(wanted),
            AccessRule(TOKEN_REVIEW, ("create",)),
            LEASES,
        ),  # a review authenticates a node agent
        permissions=publisher_permissions("watcher", (FOLLOW,)),
    )


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
