"""The port speaks TLS with the certificate that is in the files now."""

import asyncio
import ssl
from pathlib import Path

import pytest
from fastapi import FastAPI

from flotilla_common.health import bind
from flotilla_common.settings import SettingsError
from flotilla_console.web.serving import serving
from flotilla_console.web.tls import Certificate, certificate_of
from tests.support.certificates import Authority
from tests.support.fake_clock import FakeClock

HOST = "127.0.0.1"


def files(folder: Path, authority: Authority) -> str:
    """Write a new certificate with its key. Return the file of both."""
    file = folder / "tls.pem"
    file.write_bytes(authority.pair().read_bytes())
    return str(file)


def break_off(file: str) -> None:
    """Leave half of the file."""
    content = Path(file).read_bytes()
    Path(file).write_bytes(content[: len(content) // 2])


async def shown(port: int, authority: Authority) -> int:
    """Return the serial number of the certificate that a new connection gets."""
    context = ssl.create_default_context(cafile=str(authority.file))
    _, writer = await asyncio.open_connection(HOST, port, ssl=context)
    number = int(writer.get_extra_info("peercert")["serialNumber"], 16)
    writer.close()
    await writer.wait_closed()
    return number


async def looks(clock: FakeClock, number: int) -> None:
    """Wait until the files were looked at so many times more."""
    wanted = len(clock.sleeps) + number
    while len(clock.sleeps) < wanted:  # noqa: ASYNC110 - the clock does not wait
        await asyncio.sleep(0)


async def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path):
    authority, clock = Authority(tmp_path), FakeClock()
    file = files(tmp_path, authority)
    certificate = Certificate(file, file)
    sock = bind(0, "console", HOST)
    sock.listen()
    port = sock.getsockname()[1]
    async with asyncio.timeout(10), serving(FastAPI(), sock, certificate.context):
        first = await shown(port, authority)
        keeping = asyncio.create_task(certificate.keep_current(clock))
        break_off(file)
        await looks(clock, 2)
        assert await shown(port, authority) == first
        files(tmp_path, authority)
        await looks(clock, 2)
        assert await shown(port, authority) != first
        keeping.cancel()


def test_files_that_cannot_be_used_are_wrong_settings(tmp_path: Path):
    file = files(tmp_path, Authority(tmp_path))
    with pytest.raises(SettingsError, match="cannot be used"):
        certificate_of(file, str(tmp_path / "none"), "")
    with pytest.raises(SettingsError, match="cannot be used"):
        certificate_of(file, file, str(tmp_path / "none"))
    assert certificate_of("", "", "") is None
