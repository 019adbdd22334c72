"""Errors of calls to the runtime, sorted by what the caller should do (cri.md §6).

gRPC has status codes, but runtimes use UNKNOWN for nearly everything, a missing socket is an OSError, and the exception
of a deadline is a race. All are translated into these errors, with the runtime's own message.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError


class CriError(Exception):
    """The runtime refused or failed; the text gives the reason."""


class NotFound(CriError):
    """There is no such container, or no such image in the registry."""


class TimedOut(CriError):
    """The call timed out."""


class Unavailable(CriError):
    """The runtime is down, or went down during the call: the outcome is unknown."""


class Unsupported(CriError):
    """The program on the socket does not support version 1 of the interface."""


_BY_STATUS: dict[Status, type[CriError]] = {
    Status.NOT_FOUND: NotFound,
    Status.DEADLINE_EXCEEDED: TimedOut,
    Status.CANCELLED: TimedOut,
    Status.UNAVAILABLE: Unavailable,
    Status.UNIMPLEMENTED: Unsupported,
}


@asynccontextmanager
async def translated() -> AsyncGenerator[None]:
    """Translate all exceptions of a call into CriError."""
    try:
        yield
    except GRPCError as error:
        raise _BY_STATUS.get(error.status, CriError)(error.message or error.status.name) from error
    except StreamTerminatedError as error:
        text = str(error)
        raise (TimedOut if "error_code: 8" in text else Unavailable)(text) from error
    except TimeoutError as error:
        raise TimedOut("the runtime did not answer in time") from error
    except (OSError, ProtocolError) as error:
        raise Unavailable(str(error) or type(error).__name__) from error
