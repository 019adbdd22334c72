"""Who we are to the apiserver, as a request says it: the value of the Authorization header, kept fresh.

`TokenFile` is all that a pod needs. `Login` is the user of a kubeconfig: whatever files, plugins and identity providers
come to (an `Access`), asked again before it ends.
"""

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from flotilla_common.clock import Clock

TOKEN_FILE_SECONDS = 60.0
"""How long a token from a file is used before the file is read again: kubelets rotate it well before it expires."""

RENEWAL_MARGIN = timedelta(seconds=30)
"""A login is renewed this long before it expires, so that no request carries a dying token."""

REFUSAL_SECONDS = 10.0
"""For this long after a renewal a 401 causes no other: a user who is not welcome costs no plugin per request."""


class ConfigError(Exception):
    """The way to the apiserver is not configured, or not readable; the message says which file and which field."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What one context of a kubeconfig comes to. Certificates and keys are PEM."""

    server: str
    namespace: str
    proxy: str = ""
    tls_server_name: str = ""
    insecure: bool = False
    authority: str = ""
    certificate: str = ""
    key: str = ""
    headers: dict[str, str] = {}  # impersonation
    authorization: str = ""
    token_file: str = ""  # of a token that somebody else keeps fresh
    expires: datetime | None = None
    deferred: bool = False  # logging in takes a plugin or an identity provider, which was not asked yet


class Credential(Protocol):
    """A source of Authorization headers."""

    async def authorization(self) -> str:
        """The header's value; empty when there is none to send. Raises ConfigError."""
        ...

    def reject(self) -> None:
        """The apiserver did not accept the last one (401): the next request asks for a fresh one."""
        ...


class TokenFile:
    """A token in a file that somebody else keeps fresh, as in every pod."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._value = ""
        self._until = 0.0

    async def authorization(self) -> str:
        now = self._clock.monotonic()
        if not self._value or now >= self._until:
            try:
                self._value = f"Bearer {self._path.read_text().strip()}"
            except OSError as error:
                if not self._value:
                    raise ConfigError(f"token file {self._path}: {error.strerror}") from error
            self._until = now + TOKEN_FILE_SECONDS
        return self._value

    def reject(self) -> None:
        self._until = 0.0


class Login:
    """The user of a kubeconfig. A renewal reads the files again, and so takes up what was replaced there."""

    def __init__(
        self, access: Access, tls: ssl.SSLContext | None, renew: Callable[[], Awaitable[Access]], clock: Clock
    ) -> None:
        self._access = access
        self._tls = tls
        self._renew = renew
        self._clock = clock
        self._stale = access.deferred
        self._rest_until = 0.0
        self._lock = asyncio.Lock()

    async def authorization(self) -> str:
        if self._due():
            async with self._lock:
                if self._due():
                    await self._log_in()
        return self._access.authorization

    def reject(self) -> None:
        self._stale = self._stale or self._clock.monotonic() >= self._rest_until

    def _due(self) -> bool:
        expires = self._access.expires
        return self._stale or (expires is not None and self._clock.now() >= expires - RENEWAL_MARGIN)

    async def _log_in(self) -> None:
        access = await self._renew()
        if self._tls is not None:
            load_client_certificate(self._tls, access)
        if not self._access.deferred:
            self._rest_until = self._clock.monotonic() + REFUSAL_SECONDS
        self._access, self._stale = access, False


def load_client_certificate(tls: ssl.SSLContext, access: Access) -> None:
    """Use its client certificate, if it has one. OpenSSL reads files only, so it passes through a private temporary
    one. Raises ConfigError."""
    if not access.certificate:
        return
    with tempfile.NamedTemporaryFile(prefix="flotilla-") as file:
        file.write(f"{access.certificate.rstrip()}\n{access.key}".encode("latin-1"))
        file.flush()
        try:
            tls.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise ConfigError(f"client certificate and key do not load: {error.reason or error}") from error
