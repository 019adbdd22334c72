"""What a call to the apiserver may end with instead of an answer."""

from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class ApiError(Exception):
    """The apiserver answered with an error Status. `code` is the HTTP code, `reason` the Status reason, `body` the
    whole Status as it came (its details name the causes)."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float = 0.0, body: bytes = b"") -> None:
        super().__init__(message or f"HTTP {code} {reason}")
        self.code = code
        self.reason = reason
        self.message = message or f"HTTP {code} {reason}"
        self.retry_after = retry_after
        self.body = body


class Unreachable(Exception):
    """No answer: the connection failed or timed out. Whether the request took effect is unknown, unless `sent` is
    False."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


async def found_or_none(reading: Awaitable[T]) -> T | None:
    """Return what is read; None where the apiserver says that it does not exist. Raises ApiError, Unreachable."""
    try:
        return await reading
    except ApiError as error:
        if error.code == 404:
            return None
        raise
