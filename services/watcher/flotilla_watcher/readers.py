"""Lets clients without any right to JetStream read: node agents their copies, and the read-only user the streams.

An agent requests a delivery to an inbox (docs/adr/0007). A JetStream consumer sends to any subject, with the rights of
the server; so the consumer is created here, after a check of its content and destination. The replica that publishes
the resource answers, once the node's copies exist. From then on the bus itself tracks readers: a consumer without a
listener is removed. A node has one consumer per resource: the next one replaces the last, so that it cannot fill the
bus with them.

JetStream requests of the read-only user (`bus.readonly`, docs/adr/0018) are forwarded with the reader's inbox as their
reply subject, so that the server answers there directly, however long the answer is. Consumers of others are refused:
to pull from one is to take its messages away.
"""

from collections.abc import Mapping

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import readonly, subjects
from flotilla_common.bus.interface import Bus, BusError, Follow, Message
from flotilla_common.bus.pod_shards import plural_of, plural_on_bus
from flotilla_common.clock import Clock
from flotilla_common.node.quota import Quota
from flotilla_common.node.reports import FOLLOW, FollowAnswer, FollowRequest
from flotilla_common.node.serving import Sender, serve_reports
from flotilla_watcher.node_copies import NodeCopies, NotComplete
from flotilla_watcher.node_logins import QUEUE
from flotilla_watcher.routes import routes
from flotilla_watcher.writer import StreamLost, Superseded

FOLLOWS, FOLLOWS_PER_SECOND = 32, 2.0
"""Rate of requests of one node.

Agents ask when they start and when the bus was away, and each request may send all copies of the node again.
"""

COUNT_SECONDS = 60.0
"""Interval of counting the readers.

It also limits how long a node stays unserved whose request a predecessor answered just before it lost its lease.
"""

RETIRE_SECONDS = 600.0
"""Time without a reader after which a node is not served any more.

Agents that were away for a fifth of it start from the beginning anyway.
"""

API = "$JS.API"

INFO_SECONDS = 2.0

REQUESTS, REQUESTS_PER_SECOND = 500, 100.0
"""Rate of requests of all readers together: a page of 25 messages is one request."""


async def serve_node_readers(bus: Bus, publishing: Mapping[Resource, NodeCopies]) -> Follow:
    """Answer the agents' requests to read what this replica publishes now."""
    copied = {resource.plural for resource in routes()}

    async def handle(sender: Sender, request: FollowRequest) -> FollowAnswer | None:
        if plural_of(request.plural) not in copied:
            return FollowAnswer(why=f"{request.plural!r} are not copied to nodes")
        if not proper_inbox(sender.node, request.inbox):
            return FollowAnswer(why="the inbox is not one of the node's own")
        resource = next((one for one in publishing if plural_on_bus(one) == request.plural), None)
        if resource is None:
            return None
        copies = publishing[resource]
        try:
            await copies.serve(sender.node)
            return await _deliver(bus, resource, sender.node, request)
        except NotComplete:
            return FollowAnswer(why="the objects are being listed", again=True)
        except (StreamLost, Superseded, BusError) as error:
            return FollowAnswer(why=str(error), again=True)

    return await serve_reports(bus, FOLLOW, FollowRequest, handle, quota=Quota(FOLLOWS, FOLLOWS_PER_SECOND))


def proper_inbox(node: str, inbox: str) -> bool:
    """Report whether the inbox is exactly one plain token below the node's inbox."""
    prefix, _, rest = inbox.rpartition(".")
    return prefix == subjects.node_inbox(node) and rest.isalnum()


async def readers(bus: Bus, resource: Resource) -> set[str]:
    """Return the nodes whose agents read their copies of the resource. Raises BusError."""
    inboxes = await bus.delivering(subjects.node_stream(resource).name)
    return set(filter(None, map(subjects.inbox_node, inboxes)))


async def follow_readers(bus: Bus, clock: Clock, resource: Resource, copies: NodeCopies) -> None:
    """Serve nodes with readers, retire nodes without, until cancelled. Raises StreamLost, Superseded."""
    log = structlog.get_logger(resource=resource.id)
    absent: dict[str, float] = {}  # since when, of served nodes without a reader
    while True:
        await clock.sleep(COUNT_SECONDS)
        try:
            reading = await readers(bus, resource)
            for node in sorted(reading - copies.served):
                await copies.serve(node)
        except (NotComplete, BusError) as error:
            log.info("cannot count readers yet", why=str(error))
            continue
        now = clock.monotonic()
        absent = {node: absent.get(node, now) for node in copies.served - reading}
        for node, since in absent.items():
            if now - since >= RETIRE_SECONDS:
                await copies.retire(node, since)


async def _deliver(bus: Bus, resource: Resource, node: str, request: FollowRequest) -> FollowAnswer:
    delivery = await bus.deliver(
        subjects.node_stream(resource).name,
        subjects.token(node),
        [subjects.node_marker(resource, node), subjects.node_filter(node, resource)],
        request.inbox,
        created=request.created,
        after=request.last_sequence,
    )
    return FollowAnswer(accepted=True, created=delivery.created, resumed=delivery.resumed)


async def serve_readonly(bus: Bus, clock: Clock) -> Follow:
    """Answer the requests under the reader's prefix."""
    quota = Quota(REQUESTS, REQUESTS_PER_SECOND)

    async def answer(message: Message) -> bytes | None:
        if not readonly.is_inbox(message.reply):
            return None  # an answer elsewhere would be a message under another's subject
        if not quota.take(readonly.PREFIX, clock.monotonic()):
            return readonly.refusal("too many requests")
        try:
            wanted = readonly.checked(message.subject, message.data)
            if wanted.consumer and not await _own(bus, wanted.consumer):
                return readonly.refusal("the consumer is not this user's own")
            await bus.forward(f"{API}.{wanted.verb}", wanted.data, message.reply)
        except (readonly.Refused, BusError) as why:
            return readonly.refusal(str(why))
        return None

    return await bus.serve(f"{readonly.PREFIX}.>", QUEUE, answer)


async def _own(bus: Bus, consumer: str) -> bool:
    """Report whether readers created the consumer. Raises BusError when the server does not answer."""
    try:
        return readonly.is_own(await bus.request(f"{API}.CONSUMER.INFO.{consumer}", b"", INFO_SECONDS))
    except msgspec.DecodeError:
        return False
