"""Whom we take for a NATS server: TLS with an authority of the installation's own.

It is the servers that ask for TLS (`tls {}` in their configuration). Their certificates and authorities are renewed
while everything runs, so the file with the authorities is read anew for every handshake. A node's credentials name the
authority of the bus that they are for, so that one file is all that a node needs.
"""

import ipaddress
import re
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Trust(ssl.SSLContext):
    """A client's context that believes what `file` holds at the time of each handshake. Raises OSError or ssl.SSLError,
    at once, when it holds nothing that can be believed."""

    file: str

    def __new__(cls, file: str) -> "Trust":
        trust = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        trust.file = file
        trust._today()
        return trust

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """What asyncio begins a handshake with."""
        return self._today().wrap_bio(*arguments, **options)

    def _today(self) -> ssl.SSLContext:
        certificates = _CERTIFICATE.findall(Path(self.file).read_text(encoding="utf-8"))
        if certificates:  # there may be a seed beside them, in whose spelling OpenSSL sees an error
            return ssl.create_default_context(cadata="\n".join(certificates))
        return ssl.create_default_context(cafile=self.file)


def authority_of(creds: str, servers: Iterable[str]) -> str:
    """The file with the authority that the credentials name; empty if they name none. A bus on this machine's own
    loopback address needs no TLS. Raises OSError when the credentials cannot be read."""
    if not creds or Path(creds).is_dir() or all(map(_is_loopback, servers)):
        return ""
    return creds if _CERTIFICATE.search(Path(creds).read_text(encoding="utf-8")) else ""


def _is_loopback(server: str) -> bool:
    address = urlsplit(server if "://" in server else f"//{server}")
    try:
        return address.scheme != "tls" and ipaddress.ip_address(address.hostname or "").is_loopback
    except ValueError:
        return address.scheme != "tls" and address.hostname == "localhost"
