"""The bus over TLS behind a faulty network: certificates and authorities change, or end, while a client runs."""

import gc
import shutil
from collections.abc import AsyncIterator, MutableMapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from flotilla_cli.local import HOST
from tests.support.certificates import Authority
from tests.support.cluster import eventually
from tests.support.fault_proxy import Wire, wire
from tests.support.tls_broker import Reader, TlsBroker, tls_broker

pytestmark = [
    pytest.mark.timeout(120),
    # nats-py does not close what a handshake that failed leaves behind; the garbage collector does. What it finds first
    # depends on the Python: a StreamWriter, its transport, or its socket.
    pytest.mark.filterwarnings("ignore:unclosed (<StreamWriter|transport|<socket):ResourceWarning"),
]

Lines = Sequence[MutableMapping[str, Any]]


class Guarded(NamedTuple):
    """A bus with TLS, the way there, and a client that trusts the certificates in the file `believed`."""

    broker: TlsBroker
    wire: Wire
    reader: Reader
    authority: Authority
    believed: Path
    log: Lines


@pytest_asyncio.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Guarded]:
    authority, believed = Authority(tmp_path), tmp_path / "believed.crt"
    shutil.copy(authority.file, believed)
    async with tls_broker(tmp_path, authority.pair()) as broker, wire(HOST, broker.port) as way:
        with capture_logs() as log:
            reader = Reader(way.port, believed)
            try:
                await reader.begin()
                yield Guarded(broker, way, reader, authority, believed, log)
            finally:
                await reader.bus.close()
                del reader
                gc.collect()  # here, where its warnings are expected


def told(log: Lines, text: str) -> bool:
    """Report whether a warning contains the text."""
    return any(line["log_level"] == "warning" and text in str(line.get("error")) for line in log)


async def test_a_renewed_certificate_goes_unnoticed(bus: Guarded) -> None:
    await bus.broker.show(bus.authority.pair())
    bus.wire.reset()
    await bus.reader.hears(b"after the renewal")
    assert not told(bus.log, "CERTIFICATE")


async def test_a_certificate_that_has_ended_is_refused_until_it_is_renewed(bus: Guarded) -> None:
    await bus.broker.show(bus.authority.pair(lasts=timedelta(hours=-1)))
    bus.wire.reset()
    await eventually(lambda: told(bus.log, "certificate has expired"))
    assert not bus.reader.bus.connected
    await bus.broker.show(bus.authority.pair())
    await bus.reader.hears(b"after the renewal")


async def test_a_new_authority_is_believed_once_it_stands_in_the_file(bus: Guarded, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    await bus.broker.show(other.pair())
    bus.wire.reset()
    await eventually(lambda: told(bus.log, "certificate verify failed"))
    assert not bus.reader.bus.connected
    shutil.copy(other.file, bus.believed)
    await bus.reader.hears(b"after the change")
    await bus.broker.show(bus.authority.pair())  # the old one is not trusted any more
    bus.wire.reset()
    await eventually(lambda: not bus.reader.bus.connected)
    await bus.broker.show(other.pair())
    await bus.reader.hears(b"in the end")


async def test_a_handshake_that_breaks_off_is_tried_again(bus: Guarded) -> None:
    for size in (1, 400, 1200):
        cuts, bus.wire.cut_after = bus.wire.cuts, size
        bus.wire.reset()
        await eventually(lambda cuts=cuts: bus.wire.cuts > cuts)
        await bus.reader.hears(b"after %d bytes" % size)
