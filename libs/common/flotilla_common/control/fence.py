"""The right to write for one pass over an object, and how long it lasts.

Writing ends well before the lease does (`leases.FENCE_SHARE`): a request whose connection is closed at that moment is
dropped by the apiserver, or has landed, before another replica can take over. So a write may neither begin nor go on
after it, however long it waited for a token, a connection or the apiserver's queue.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import msgspec

from flotilla_common.kube.interface import Unreachable


class Fence(msgspec.Struct, frozen=True):
    """Of one pass."""

    may_send: Callable[[], bool]
    """Whether a write may be sent at this very moment."""
    seconds_left: Callable[[], float]
    """How long writes that were sent may go on; less than 0 when that is over. A renewed lease gives them more."""

    @contextlib.asynccontextmanager
    async def bounded(self) -> AsyncGenerator[None]:
        """Ends what is done within when the time is over. Raises Unreachable then: its outcome is unknown."""
        loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

        def look() -> None:
            nonlocal timer
            left = self.seconds_left()
            if left > 0:
                timer = loop.call_later(left, look)
            else:
                limit.reschedule(loop.time())

        try:
            async with limit:
                timer = loop.call_later(self.seconds_left(), look)
                try:
                    yield
                finally:
                    timer.cancel()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise Unreachable("the lease was not renewed in time: given up without an answer", sent=True) from error
