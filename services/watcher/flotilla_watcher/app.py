"""The watcher: publishes resources, each on the one replica that holds its lease (docs/adr/0040).

Replicas share the leases evenly; resources move to another replica when its holder is silent for a lease duration, or
when a new replica has less than its share. The holder of the first one also keeps the gaps in the records of all
services small. When etcd was restored from a backup, the watcher announces it on the
streams and starts again as another process.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from flotilla_common.api.resources import POD, TOKEN_REVIEW, Resource
from flotilla_common.bus.permissions import publisher_permissions
from flotilla_common.bus.pod_shards import plural_on_bus, pod_shards, shard_index
from flotilla_common.bus.subjects import RECORDS, affiliated
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
from flotilla_watcher.pod_sharing import FirstShard, OtherShard, Remark, Sharing, WholeResource
from flotilla_watcher.readers import serve_node_readers, serve_readonly
from flotilla_watcher.resource_watch import ResourceWatch
from flotilla_watcher.version_lineage import begin_lineage

POLL_SECONDS = 0.25
"""Interval of comparing the held leases with the running watches."""

OTHERS = "others"
"""The last part of the name of the lease of all resources but pods."""


class Published(NamedTuple):
    """The copies and remarks that this replica publishes beside the streams of objects."""

    copies: dict[Resource, NodeCopies]  # for nodes
    idle: dict[str, str]  # why it publishes less than its leases and settings say, by the id of a resource


async def run(context: Context, resources: Sequence[Resource]) -> None:
    """Publish the resources whose leases this replica holds, until cancelled.

    Raises VersionsWentBack (in a group) when etcd was restored.
    """
    settings = context.settings
    leases = leases_of(resources, settings.watcher_shards)
    parts = list(leases.values())
    idle: dict[str, str] = {}
    shards = Shards(
        api=context.api,
        clock=context.clock,
        service=context.service,
        namespace=settings.namespace,
        identity=context.holder,
        names=list(leases),
        terms=LeaseTerms(settings.lease_duration, settings.lease_retry_period),
        apart=[index for index, part in enumerate(parts) if affiliated(part[0])] if settings.watcher_shards > 1 else (),
    )
    copies: dict[Resource, NodeCopies] = {}
    running: dict[Resource, asyncio.Task[None]] = {}
    answering = [await serve_node_readers(context.bus, copies), *await serve_node_logins(context)]
    answering.append(await serve_readonly(context.bus, context.clock))
    context.started()
    context.vitals["resources"] = lambda: [one.id for index in sorted(shards.serving) for one in parts[index]]
    context.vitals["idle"] = lambda: idle
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(shards.run())
            group.create_task(follow_leases(context, shards, parts, Published(copies, idle), running))
            group.create_task(_old_records(context, resources, partial(shards.serves, 0)).run())
    except* VersionsWentBack:
        await begin_lineage(context.bus, context.entropy, list(running))
        raise
    finally:
        for served in answering:
            await served.stop()


async def follow_leases(
    context: Context,
    shards: Shards,
    parts: Sequence[Sequence[Resource]],
    found: Published,
    running: dict[Resource, asyncio.Task[None]],
) -> None:
    """Run the watches of every held lease, and no others. `parts`: the resources of each lease."""
    async with asyncio.TaskGroup() as group:
        while True:
            serving = {resource: index for index in sorted(shards.serving) for resource in parts[index]}
            for resource in [resource for resource in running if resource not in serving]:
                running.pop(resource).cancel()
                found.idle.pop(resource.id, None)
                context.health.ready(resource.id, True)
            for resource in [resource for resource in serving if resource not in running]:
                fence = partial(shards.serves, serving[resource])
                running[resource] = group.create_task(_watch(context, resource, fence, found))
            await context.clock.sleep(POLL_SECONDS)


def _old_records(context: Context, resources: Sequence[Resource], fence: Callable[[], bool]) -> OldRecords:
    return OldRecords(bus=context.bus, clock=context.clock, streams=RECORDS, resources=resources, fence=fence)


def lease_name(resource: Resource) -> str:
    """Return the last part of the name of the lease under which the resource is published."""
    return f"{plural_on_bus(resource)}.core" if affiliated(resource) else OTHERS


def leases_of(resources: Sequence[Resource], shards: int) -> dict[str, list[Resource]]:
    """Return what is published under each lease: pods, each further shard of them, and all others together.

    Pods are most of the traffic. A lease for each resource would be six writes a second in a cluster at rest.
    """
    found: dict[str, list[Resource]] = {}
    for resource in (*(pod_shards(shards) if POD in resources else ()), *(one for one in resources if one != POD)):
        found.setdefault(lease_name(resource), []).append(resource)
    return found


async def _watch(context: Context, resource: Resource, fence: Callable[[], bool], found: Published) -> None:
    def report(trouble: str) -> None:
        context.health.ready(resource.id, not trouble, trouble)

    def remark(why: str) -> None:
        found.idle.pop(resource.id, None)
        if why:
            found.idle[resource.id] = why
            context.health.ready(resource.id, True, why)

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
        copies=found.copies,
        tracer=context.tracer,
        sharing=_sharing(context, resource, remark),
    ).run()


def _sharing(context: Context, resource: Resource, remark: Remark) -> Sharing:
    if index := shard_index(resource):
        return OtherShard(context.bus, context.clock, index, remark)
    if resource == POD:
        return FirstShard(context.api, context.bus, context.clock, context.settings.watcher_shards, remark)
    return WholeResource()


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
