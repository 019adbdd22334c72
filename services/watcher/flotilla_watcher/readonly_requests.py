"""Forwards JetStream requests of the read-only user (`bus.readonly`, docs/adr/0018).

A request is forwarded with the reader's inbox as its reply subject, so that the server answers there directly, however
long the answer is. Consumers of others are refused: to pull from one is to take its messages away.
"""

import msgspec

from flotilla_common.bus import readonly
from flotilla_common.bus.interface import Bus, BusError, Follow, Message
from flotilla_common.clock import Clock
from flotilla_common.node.quota import Quota
from flotilla_watcher.node_logins import QUEUE

API = "$JS.API"
INFO_SECONDS = 2.0
REQUESTS, REQUESTS_PER_SECOND = 500, 100.0
"""Rate of requests of all readers together: a page of 25 messages is one request."""


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
