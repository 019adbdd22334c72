"""Our credentials for the apiserver: the value of the Authorization header, kept fresh.

`TokenFile` is all that a pod needs. `Login` is the user of a kubeconfig: the result of files, plugins and identity
providers (an `Access`), renewed before it expires.
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
"""Time after which a token file is read again: kubelets rotate tokens well before they expire."""

RENEWAL_MARGIN = timedelta(seconds=30)
"""Time before its expiry at which a login is renewed, so that no request carries an expiring token."""

REFUSAL_SECONDS = 10.0
"""Time after a renewal in which a 401 causes no other, so that an unauthorized user runs no plugin per request."""


class ConfigError(Exception):
    """The connection to the apiserver is not configured or not readable; the message names the file and the field."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one context of a kubeconfig. Certificates and keys are PEM."""

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
    token_file: str = ""  # file with a token that another process keeps fresh
    expires: datetime | None = None
    deferred: bool = False  # a plugin or an identity provider must be asked first


class Credential(Protocol):
    """A source of Authorization headers."""

    async def authorization(self) -> str:
        """Return the header's value; empty when there is none to send. Raises ConfigError."""
        ...

    def reject(self) -> None:
        """Renew the credentials for the next request: the apiserver did not accept the last ones (401)."""
        ...


class TokenFile:
    """A token in a file that another process keeps fresh, as in every pod."""

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
    """The user of a kubeconfig. A renewal reads the files again, including changes to them."""

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
    """Load the client certificate, if there is one. Raises ConfigError.

    OpenSSL reads files only, so a private temporary file is used.
    """
    if not access.certificate:
        return
    with tempfile.NamedTemporaryFile(prefix="flotilla-") as file:
        file.write(f"{access.certificate.rstrip()}\n{access.key}".encode("latin-1"))
        file.flush()
        try:
            tls.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise ConfigError(f"client certificate and key do not load: {error.reason or error}") from error
