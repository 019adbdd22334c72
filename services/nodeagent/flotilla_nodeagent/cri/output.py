"""The output of a command in a container, cut while it is read.

The runtime answers ExecSync with one message of all that the command has written, 16 MiB and more. Messages are
otherwise buffered as a whole, and a few of these at once would exceed the agent's memory limit. So this one is read
field by field, and the excess of a field is discarded as it arrives.
"""

from collections.abc import Awaitable, Callable

from grpclib.client import Channel, Stream
from grpclib.const import Cardinality
from grpclib.exceptions import ProtocolError
from grpclib.metadata import Deadline, decode_metadata

from flotilla_nodeagent.cri.types import Executed
from flotilla_nodeagent.cri.wire import cri_pb2 as wire

PIECE = 64 << 10
"""Bytes of discarded output that are in memory at once."""

_HEADER = 5
"""Bytes in front of a message: a flag for compression, and its size."""

_VARINT, _DELIMITED = 0, 2
"""Wire types of fields; an answer to ExecSync has no others."""

_METHOD = "/runtime.v1.RuntimeService/ExecSync"

Read = Callable[[int], Awaitable[bytes]]


class CallChannel(Channel):
    """A channel that also makes the one call whose answer is not buffered as a whole."""

    async def execute(self, request: wire.ExecSyncRequest, keep: int, timeout: float | None) -> Executed:
        """Call ExecSync and return the first `keep` bytes of stdout and of stderr. Raises as every call of grpclib."""
        stream = _ExecStream(
            self,
            _METHOD,
            decode_metadata([]),  # none
            Cardinality.UNARY_UNARY,
            wire.ExecSyncRequest,
            wire.ExecSyncResponse,
            codec=self._codec,
            status_details_codec=self._status_details_codec,
            dispatch=self.__dispatch__,
            deadline=None if timeout is None else Deadline.from_timeout(timeout),
        )
        async with stream:
            await stream.send_message(request, end=True)
            done = await stream.executed(keep)
        if done is None:
            raise ProtocolError("ExecSync was answered without a message")
        return done


class _ExecStream(Stream[wire.ExecSyncRequest, wire.ExecSyncResponse]):
    async def executed(self, keep: int) -> Executed | None:
        """Receive the output in place of a message; return None when there is no message."""
        await self.recv_initial_metadata()
        with self._wrapper:
            if header := await self._stream.recv_data(_HEADER):
                return await read_output(self._stream.recv_data, int.from_bytes(header[1:], "big"), keep)
            return None


async def read_output(read: Read, size: int, keep: int) -> Executed:
    """Read an ExecSyncResponse of `size` bytes. Raises ProtocolError if it is not one."""
    fields = _Fields(read, size)
    kept, cut = bytearray(), False
    while fields.left:
        tag = await fields.varint()
        kept += _as_varint(tag)
        if tag & 7 == _VARINT:
            kept += _as_varint(await fields.varint())
        elif tag & 7 == _DELIMITED:
            length = await fields.varint()
            beginning = await fields.bytes(min(length, keep))
            kept += _as_varint(len(beginning)) + beginning
            await fields.skip(length - len(beginning))
            cut = cut or length > keep
        else:
            raise ProtocolError(f"ExecSync was answered with a field of type {tag & 7}")
    reply = wire.ExecSyncResponse.FromString(bytes(kept))
    return Executed(reply.exit_code, reply.stdout, reply.stderr, cut)


class _Fields:
    """The fields of a message that is still being received."""

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self.left = size

    async def bytes(self, count: int) -> bytes:
        if count > self.left:
            raise ProtocolError("a field is longer than its message")
        self.left -= count
        return await self._read(count)

    async def skip(self, count: int) -> None:
        while count:
            count -= len(await self.bytes(min(count, PIECE)))

    async def varint(self) -> int:
        """Read a number: seven bits in a byte, the lowest first, and a bit for more bytes to come."""
        value = 0
        for shift in range(0, 64, 7):
            (byte,) = await self.bytes(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ProtocolError("a number is longer than 64 bits")


def _as_varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])
