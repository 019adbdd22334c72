"""Fake nodes come into a cluster, and a kwok that may have been away looks at them anew."""

import msgspec

from flotilla_cli.cluster import kwok
from flotilla_cli.cluster.admin import ensure
from flotilla_cli.cluster.errors import ClusterError
from flotilla_common.api.resources import NODE
from flotilla_common.clock import Clock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api

ADDED_WITHIN = 60.0  # seconds; it takes one
POLL = 0.1


async def add(api: Api, count: int, clock: Clock) -> None:
    """Make `node-0` … `node-<count-1>` where they do not exist, and wait until pods can go there. Raises ClusterError
    when that takes too long."""
    names = [kwok.node(index)["metadata"]["name"] for index in range(count)]
    for index in range(count):
        await ensure(api, NODE, kwok.node(index))
    deadline = clock.monotonic() + ADDED_WITHIN
    while waiting := set(names).intersection(kwok.unschedulable((await api.list(NODE)).items)):
        if clock.monotonic() > deadline:
            raise ClusterError(f"{len(waiting)} nodes are not ready")
        await clock.sleep(POLL)


async def retake(api: Api, count: int, clock: Clock, boot: str) -> None:
    """Have a kwok that is called `boot` at every start take these nodes again, and look at every pod on them. Raises
    ClusterError when it does not."""
    forgotten = msgspec.json.encode({"status": {"nodeInfo": {"bootID": ""}}})
    for index in range(count):
        name = kwok.node(index)["metadata"]["name"]
        await api.patch(NODE, "", name, forgotten, PatchType.MERGE, subresource="status")
    await kwok.show_pods(api, clock, boot, lambda: None)
