"""Lets node agents read their copies without any right to JetStream (docs/adr/0007).

An agent asks for a delivery to an inbox. A JetStream consumer sends wherever it is told to, with the rights of the
server; so the consumer is made here, after a look at what it would deliver, and where.
"""

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Follow
from flotilla_common.node.reports import FOLLOW, FollowAnswer, FollowRequest
from flotilla_common.node.serving import Sender, serve_reports
from flotilla_watcher.routes import ROUTES

QUEUE = "watcher"
"""Any replica can do it: it takes no lease to read."""


async def serve_node_readers(bus: Bus) -> Follow:
    """Answer the agents' requests to read."""
    resources = {resource.plural: resource for resource in ROUTES}

    async def handle(sender: Sender, request: FollowRequest) -> FollowAnswer:
        resource = resources.get(request.plural)
        if resource is None:
            return FollowAnswer(why=f"nodes get no {request.plural!r}")
        if not proper_inbox(sender.node, request.inbox):
            return FollowAnswer(why="the inbox is not one of the node's own")
        return await _deliver(bus, resource, sender.node, request)

    return await serve_reports(bus, FOLLOW, FollowRequest, handle, queue=QUEUE)


def proper_inbox(node: str, inbox: str) -> bool:
    """Exactly one plain token below the node's inbox."""
    prefix, _, rest = inbox.rpartition(".")
    return prefix == subjects.node_inbox(node) and rest.isalnum()


async def _deliver(bus: Bus, resource: Resource, node: str, request: FollowRequest) -> FollowAnswer:
    filters = [subjects.node_filter(node, resource), subjects.node_marker(resource)]
    try:
        delivery = await bus.deliver(
            subjects.node_stream(resource).name,
            filters,
            request.inbox,
            created=request.created,
            after=request.last_sequence,
        )
    except BusError as error:
        return FollowAnswer(why=str(error), again=True)
    return FollowAnswer(accepted=True, created=delivery.created, resumed=delivery.resumed)
