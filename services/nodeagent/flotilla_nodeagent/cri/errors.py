"""What can go wrong in a call to the runtime, sorted by what the caller should do (cri.md §6).

gRPC has status codes, but runtimes use UNKNOWN for nearly everything, a missing socket is an OSError, and which
exception a deadline ends in is a race. All of it becomes one of these errors here, with the runtime's own words.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from grpclib.const import Status
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError


class CriError(Exception):
    """The runtime refused or failed; its text says why."""


class NotFound(CriError):
    """No such container, or no such image in the registry."""


class TimedOut(CriError):
    """The call took longer than it was allowed to."""


class Unavailable(CriError):
    """The runtime is down, or went down during the call: the outcome is unknown."""


class Unsupported(CriError):
    """What listens on the socket does not speak version 1 of the interface."""


_BY_STATUS: dict[Status, type[CriError]] = {
    Status.NOT_FOUND: NotFound,
    Status.DEADLINE_EXCEEDED: TimedOut,
    Status.CANCELLED: TimedOut,
    Status.UNAVAILABLE: Unavailable,
    Status.UNIMPLEMENTED: Unsupported,
}


@asynccontextmanager
async def translated() -> AsyncGenerator[None]:
    """Raises only CriError for what a call can raise."""
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
