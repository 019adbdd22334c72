"""Who we are to the bus, and whom we take for one of its servers.

The credentials file is told apart by what is in it. Three kinds are in use: a NATS credentials file (a user JWT and its
seed), a bare user seed (an nkey, as `flotilla node-creds` writes it), and a token that somebody else vouches for, such
as a projected ServiceAccount token. Such a token is renewed in its file, so it is read anew for every connection.
Instead of a file it may be a folder with one `<service>.seed` for each service.

It is the servers that ask for TLS (`tls {}` in their configuration). Their certificates and authorities are renewed
while everything runs, so the file with the authorities is read anew for every handshake. A node's credentials name the
authority of the bus that they are for, so that one file is all that a node needs.
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


class Login(msgspec.Struct, frozen=True):
    """The options of the client that say who we are; at most one is set."""

    creds_file: str | None = None
    seed: str | None = None
    token: Callable[[], str] | None = None


def seed_in(text: str) -> str:
    """The user seed in the content of a credentials file. Raises ValueError when there is none."""
    found = _SEED.search(text)
    if found is None:
        raise ValueError("there is no user seed")
    return found[0]


def read_login(file: str, service: str = "") -> Login:
    """What the file holds; an empty name is nobody. In a folder it is the service's file. Raises OSError when it cannot
    be read, ValueError when it holds nothing of the kind."""
    if not file:
        return Login()
    if Path(file).is_dir():
        file = str(Path(file) / f"{service}.seed")
    text = Path(file).read_text(encoding="utf-8")
    if _CREDS in text:
        return Login(creds_file=file)
    if seed := _SEED.search(text):
        return Login(seed=seed[0])
    if not text.strip() or len(text.split()) != 1:
        raise ValueError(f"{file} holds neither NATS credentials, nor a user seed, nor a token")
    return Login(token=lambda: Path(file).read_text(encoding="utf-8").strip())


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
