"""Receives reports of node agents: checks sender, size and quota, decodes, and has the right replica answer.

NATS lets a client ask for the reply on any subject. An agent's answer goes only to an inbox of its own node, so that no
agent can make us write to a subject that it may not write to.

Nor does NATS limit the traffic of one user. So each node has a quota here, and messages beyond it are not even decoded.

An agent may have received an object before us, so its report is a reason to ask the apiserver, but not repeatedly:
absent objects are cached (a uid never comes back), and each node has a quota, so that a node that makes up uids does
not keep the apiserver busy.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import structlog

from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, Follow, Message
from flotilla_common.node.quota import Quota
from flotilla_common.node.reports import Answer

T = TypeVar("T")

Key = tuple[str, str]
"""Namespace and name."""

Read = Callable[[Resource, str, str], Awaitable[object]]
"""Reads an object into its table, and returns it. Raises ApiError, Unreachable."""

LOOKUP_BURST, LOOKUPS_PER_SECOND = 128, 2.0
"""Reads for one node: all of its pods at once, when it starts while the mirror lags; hardly any afterwards."""

REMEMBERED = 10_000
"""Number of absent objects that are cached."""


class TooOften(Exception):
    """A node has used up its quota of reads for now."""


class Lookups:
    """The reads for one kind of reports."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._quota = Quota(LOOKUP_BURST, LOOKUPS_PER_SECOND)
        self._absent: OrderedDict[tuple[Resource, Key, str], None] = OrderedDict()

    async def find(
        self, node: str, resource: Resource, key: Key, uid: str, held: Callable[[object], T | None]
    ) -> T | None:
        """Return the object of this uid; None when the apiserver does not have it.

        `held` gets it from its table, or from what was just read (None before that). Raises TooOften, ApiError,
        Unreachable.
        """
        if (found := held(None)) is not None or (resource, key, uid) in self._absent:
            return found
        if (found := held(await self.read(node, resource, key))) is None:
            self._absent[resource, key, uid] = None
            if len(self._absent) > REMEMBERED:
                self._absent.popitem(last=False)
        return found

    async def read(self, node: str, resource: Resource, key: Key) -> object:
        """Read the object into its table, and return it. Raises TooOften, ApiError, Unreachable."""
        if not self._quota.take(node, asyncio.get_running_loop().time()):
            raise TooOften(f"too many objects were looked up for node {node}")
        return await self._read(resource, *key)


M = TypeVar("M", bound=msgspec.Struct)

UNDER_WAY = 256
"""Concurrent reports of one kind from one node: more than it has pods, few enough to leave room for other nodes."""

BURST, PER_SECOND = 512, 64.0
"""Quota of reports of one kind from one node: twice UNDER_WAY at once, and then more per second than a node needs."""

REPORT_BYTES = 1 << 20
"""The largest report: its content goes into an object, and etcd accepts 1.5 MiB of these."""


class Sender(msgspec.Struct, frozen=True):
    """The sender and the object of a report. The bus authenticates the node, and nothing else."""

    node: str
    namespace: str
    name: str


Handler = Callable[[Sender, M], Awaitable[Answer | None]]
"""Checks a report and returns the answer; None when another replica has to answer."""


async def serve_reports(
    bus: Bus, kind: str, body: type[M], handler: Handler[M], *, queue: str = "", quota: Quota | None = None
) -> Follow:
    """Answer the reports of one kind from all nodes; each node has the usual quota, unless another one is given.

    Without a queue every replica receives every report, and the owner of the object's shard answers. With a queue one
    of its members does. An undecodable report is refused by each replica that receives it.
    """
    decode = msgspec.json.Decoder(body).decode
    log = structlog.get_logger(report=kind)
    under_way: Counter[str] = Counter()
    allowed = quota or Quota(BURST, PER_SECOND)

    async def answer(message: Message) -> bytes | None:
        node, namespace, name = subjects.reporter(message.subject)
        if not message.reply.startswith(subjects.node_inbox(node) + "."):
            log.warning("reply subject is outside the node's inbox, report rejected", node=node, reply=message.reply)
            return None
        if not allowed.take(node, asyncio.get_running_loop().time()):
            return _later("too many reports")
        if under_way[node] >= UNDER_WAY:
            return _later(f"{UNDER_WAY} reports are in progress already")
        if len(message.data) > REPORT_BYTES:
            return msgspec.json.encode(Answer(why=f"larger than {REPORT_BYTES} bytes"))
        try:
            report = decode(message.data)
        except msgspec.DecodeError as error:
            log.warning("unreadable report", node=node, namespace=namespace, name=name, error=str(error))
            return msgspec.json.encode(Answer(why=f"unreadable: {error}"))
        under_way[node] += 1
        try:
            given = await handler(Sender(node, namespace, name), report)
        finally:
            under_way[node] -= 1
            if not under_way[node]:
                del under_way[node]
        return None if given is None else msgspec.json.encode(given)

    return await bus.serve(subjects.report_filter(kind), queue, answer)


def _later(why: str) -> bytes:
    return msgspec.json.encode(Answer(why=why, again=True))
