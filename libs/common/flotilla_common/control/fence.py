"""The right to write for one pass over an object, and its remaining time.

Writing ends well before the lease does (`leases.FENCE_SHARE`): a request whose connection is closed at that moment is
dropped by the apiserver, or has been applied, before another replica can take over. So no write may start or continue
after it, however long it waited for a token, a connection or the apiserver's queue.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec

from flotilla_common.kube.interface import Unreachable


class Fence(msgspec.Struct, frozen=True):
    """The fence of one pass."""

    may_send: Callable[[], bool]
    """Report whether a write may be sent at this moment."""
    seconds_left: Callable[[], float]
    """Return how long sent writes may continue, below 0 when the time is over; a renewed lease extends it."""

    @contextlib.asynccontextmanager
    async def bounded(self) -> AsyncGenerator[None]:
        """Cancel the body when the time is over. Raises Unreachable then: the outcome is unknown."""
        loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

        def check() -> None:
            nonlocal timer
            left = self.seconds_left()
            if left > 0:
                timer = loop.call_later(left, check)
            else:
                limit.reschedule(loop.time())

        try:
            async with limit:
                timer = loop.call_later(self.seconds_left(), check)
                try:
                    yield
                finally:
                    timer.cancel()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Unreachable("the lease was not renewed in time: gave up without a response", sent=True) from error
