"""Our credentials for the bus, and the certificate authorities that its servers are checked against.

The content of the credentials file decides its type. Three are in use: a NATS credentials file (a user JWT and its
seed), a bare user seed (an nkey, as `flotilla node-creds` writes it), and a token that a third party vouches for, such
as a projected ServiceAccount token. Such a token is renewed in its file, so it is read again for every connection.
Instead of a file it may be a folder with one `<service>.seed` for each service.

The servers require TLS (`tls {}` in their configuration). Certificates and authorities are renewed at runtime, so the
file with the authorities is read again for every handshake. A node's credentials include the authority of their bus, so
that one file is all that a node needs.
"""

import ipaddress
import re
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_SEED = re.compile(r"\bSU[A-Z2-7]{56}\b")
_CREDS = "BEGIN NATS USER JWT"


class BusCredentials(msgspec.Struct, frozen=True):
    """The credential options of the NATS client; at most one is set."""

    creds_file: str | None = None
    seed: str | None = None
    token: Callable[[], str] | None = None


def seed_in(text: str) -> str:
    """Return the user seed in the content of a credentials file. Raises ValueError when there is none."""
    found = _SEED.search(text)
    if found is None:
        raise ValueError("no user seed found")
    return found[0]


def read_credentials(file: str, service: str = "") -> BusCredentials:
    """Return the login in the file, or in the service's file of a folder; an empty name gives an empty login.

    Raises OSError when it cannot be read, ValueError when it holds no credentials.
    """
    if not file:
        return BusCredentials()
    if Path(file).is_dir():
        file = str(Path(file) / f"{service}.seed")
    text = Path(file).read_text(encoding="utf-8")
    if _CREDS in text:
        return BusCredentials(creds_file=file)
    if seed := _SEED.search(text):
        return BusCredentials(seed=seed[0])
    if not text.strip() or len(text.split()) != 1:
        raise ValueError(f"{file} holds neither NATS credentials, nor a user seed, nor a token")
    return BusCredentials(token=lambda: Path(file).read_text(encoding="utf-8").strip())


class Trust(ssl.SSLContext):
    """A client's TLS context that reads the trusted certificates from `file` at each handshake.

    Creating it raises OSError or ssl.SSLError when the file holds no usable certificates.
    """

    file: str

    def __new__(cls, file: str) -> "Trust":
        trust = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        trust.file = file
        trust._today()
        return trust

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Begin a handshake; asyncio calls it for each."""
        return self._today().wrap_bio(*arguments, **options)

    def _today(self) -> ssl.SSLContext:
        certificates = _CERTIFICATE.findall(Path(self.file).read_text(encoding="utf-8"))
        if certificates:  # a seed may be next to them, which OpenSSL would reject
            return ssl.create_default_context(cadata="\n".join(certificates))
        return ssl.create_default_context(cafile=self.file)


def authority_of(creds: str, servers: Iterable[str]) -> str:
    """Return the file with the authority that the credentials include; empty if there is none.

    A bus on this machine's own loopback address needs no TLS. Raises OSError when the credentials cannot be read.
    """
    if not creds or Path(creds).is_dir() or all(map(_is_loopback, servers)):
        return ""
    return creds if _CERTIFICATE.search(Path(creds).read_text(encoding="utf-8")) else ""


def _is_loopback(server: str) -> bool:
    address = urlsplit(server if "://" in server else f"//{server}")
    try:
        return address.scheme != "tls" and ipaddress.ip_address(address.hostname or "").is_loopback
    except ValueError:
        return address.scheme != "tls" and address.hostname == "localhost"
