"""Reads certificates as servers present them: the webhook's, and a NATS server's with its INFO."""

import asyncio
import base64
import contextlib
import ssl
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from flotilla_insight.doctor.facts import Banner, Certificate

SECONDS = 3.0
PORT = 4222


class _Info(msgspec.Struct):
    version: str = ""
    auth_required: bool = False
    tls_required: bool = False
    jetstream: bool = False


async def shown(url: str, authority: str) -> Certificate:
    """Return the certificate behind https://HOST:PORT/…, verified with a caBundle. Raises OSError, TimeoutError."""
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or 443
    der = await _certificate(host, port)
    return _described(der, await _objection(host, port, base64.b64decode(authority).decode()))


async def banner(server: str) -> Banner:
    """Return the NATS server's INFO and certificate. The latter is verified at login, not here."""
    address = urlsplit(server if "://" in server else f"nats://{server}")
    host, port = address.hostname or "", address.port or PORT
    shown_as = f"{address.scheme}://{host}:{port}"
    try:
        async with asyncio.timeout(SECONDS):
            info, der = await _greeting(host, port)
    except (OSError, TimeoutError, ValueError, msgspec.MsgspecError) as error:
        return Banner(shown_as, trouble=str(error) or f"no answer within {SECONDS:g} s")
    return Banner(shown_as, info.version, info.auth_required, info.jetstream, _described(der) if der else None)


async def _greeting(host: str, port: int) -> tuple[_Info, bytes]:
    """Return the INFO line, and the certificate if TLS follows. Raises OSError."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        line = await reader.readline()
        if not line.startswith(b"INFO "):
            raise OSError(f"{host}:{port} is not a NATS server")
        info = msgspec.json.decode(line.removeprefix(b"INFO "), type=_Info)
        if not info.tls_required:
            return info, b""
        await writer.start_tls(_anybody(), server_hostname=host)
        return info, _peer(writer)
    finally:
        await _close(writer)


async def _certificate(host: str, port: int) -> bytes:
    async with asyncio.timeout(SECONDS):
        _, writer = await asyncio.open_connection(host, port, ssl=_anybody(), server_hostname=host)
    try:
        return _peer(writer)
    finally:
        await _close(writer)


async def _objection(host: str, port: int, authorities: str) -> str:
    """Return why a client that trusts these authorities rejects the certificate; empty if it does not."""
    try:
        trust = ssl.create_default_context(cadata=authorities)
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=trust, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return str(error)
    await _close(writer)
    return ""


def _described(der: bytes, problem: str = "") -> Certificate:
    certificate = x509.load_der_x509_certificate(der)
    return Certificate(certificate.not_valid_before_utc, certificate.not_valid_after_utc, problem)


def _anybody() -> ssl.SSLContext:
    """Return a context that accepts any certificate: nothing is sent over it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _peer(writer: asyncio.StreamWriter) -> bytes:
    found = writer.get_extra_info("ssl_object").getpeercert(True)
    assert isinstance(found, bytes)
    return found


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
