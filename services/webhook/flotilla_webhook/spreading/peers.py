"""Lends places of WorkloadSpreads between replicas of the webhook, over the bus (ADR 29).

A request to a replica takes a millisecond or two, and a write of the book twenty. Without the bus there are no answers,
and pods wait for a write: the webhook serves while NATS is down.
"""

from collections.abc import Awaitable, Callable

import msgspec
import structlog

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Follow, Message
from flotilla_common.clock import Clock, Entropy

ASK_SECONDS = 0.25
"""Timeout of an answer."""

SILENT_SECONDS = 1.0
"""Time for which a replica that has not answered is skipped."""

_log = structlog.get_logger()


class LoanRequest(msgspec.Struct, frozen=True):
    """A pod that needs a place in a subset."""

    uid: str  # of the WorkloadSpread
    version: str
    subset: str
    pod: str  # empty if the apiserver will choose a name


class Grant(msgspec.Struct, frozen=True):
    """A place for a pod. Both fields are empty if there is none."""

    subset: str = ""
    token: str = ""


class Peers:
    """The replicas of the webhook, and the requests between them."""

    def __init__(self, bus: Bus, clock: Clock, entropy: Entropy) -> None:
        self.own = entropy.token()
        """The name of this process among the replicas."""
        self._bus = bus
        self._clock = clock
        self._silent: dict[str, float] = {}  # replicas that have not answered, each skipped until a time
        self._serving: Follow | None = None

    async def serve(self, lend: Callable[[LoanRequest], Awaitable[Grant | None]]) -> None:
        """Serve the other replicas from now on, without an answer where `lend` returns None."""

        async def answer(message: Message) -> bytes | None:
            grant = await lend(msgspec.json.decode(message.data, type=LoanRequest))
            return None if grant is None else msgspec.json.encode(grant)

        self._serving = await self._bus.serve(subjects.places(self.own), "", answer)

    async def close(self) -> None:
        """Stop serving."""
        if self._serving is not None:
            await self._serving.stop()

    def answers(self, replica: str) -> bool:
        """Report whether the replica may answer now."""
        return self._silent.get(replica, 0.0) <= self._clock.monotonic()

    async def ask(self, replica: str, question: LoanRequest) -> Grant | None:
        """Ask a replica for a place. Return None without an answer; the place may be given nevertheless."""
        try:
            answer = await self._bus.request(subjects.places(replica), msgspec.json.encode(question), ASK_SECONDS)
            return msgspec.json.decode(answer, type=Grant)
        except (BusError, msgspec.MsgspecError) as failure:
            _log.info("cannot ask for a place", peer=replica, why=str(failure))
            now = self._clock.monotonic()
            self._silent = {one: until for one, until in self._silent.items() if until > now}
            self._silent[replica] = now + SILENT_SECONDS
            return None
