"""Errors of calls to the apiserver."""

from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class ApiError(Exception):
    """An error Status from the apiserver.

    `code` is the HTTP code, `reason` the Status reason, `body` the whole Status as received (its details name the
    causes).
    """

    def __init__(self, code: int, reason: str, message: str, retry_after: float = 0.0, body: bytes = b"") -> None:
        super().__init__(message or f"HTTP {code} {reason}")
        self.code = code
        self.reason = reason
        self.message = message or f"HTTP {code} {reason}"
        self.retry_after = retry_after
        self.body = body


class Unreachable(Exception):
    """A failed or timed out connection. The request may have taken effect, unless `sent` is False."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


async def found_or_none(reading: Awaitable[T]) -> T | None:
    """Return the object being read, or None if it does not exist. Raises ApiError, Unreachable."""
    try:
        return await reading
    except ApiError as error:
        if error.code == 404:
            return None
        raise
