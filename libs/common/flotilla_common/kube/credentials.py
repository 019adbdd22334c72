"""Who we are to the apiserver: tokens that stay, tokens in files that rotate, tokens that a plugin hands out.

A credential answers with the value of the Authorization header. `reject` is called when the apiserver answered 401, so
that the next request asks for a fresh one.
"""

import asyncio
import base64
import os
import ssl
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from flotilla_common.clock import Clock
from flotilla_common.kube.kubeconfig import ConfigError, Entry, ExecPlugin

TOKEN_FILE_SECONDS = 60.0
"""How long a token from a file is used before the file is read again: kubelets rotate it well before it expires."""

EXPIRY_MARGIN = timedelta(seconds=30)
"""A plugin's token is renewed this long before it expires, so that no request carries a dying one."""

EXEC_SECONDS = 60.0
"""A plugin may talk to a cloud; longer than this it hangs."""


class Credential(Protocol):
    """A source of Authorization headers."""

    async def authorization(self) -> str:
        """The header's value; empty when there is none to send. Raises ConfigError."""
        ...

    def reject(self) -> None:
        """The apiserver did not accept the last one."""
        ...


class Fixed:
    """A token or a password that never changes, or nothing at all."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    @classmethod
    def bearer(cls, token: str) -> "Fixed":
        """A bearer token."""
        return cls(f"Bearer {token.strip()}")

    @classmethod
    def basic(cls, username: str, password: str) -> "Fixed":
        """User name and password."""
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    async def authorization(self) -> str:
        return self._value

    def reject(self) -> None:
        """There is no other one."""


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


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _ExecStatus | None = None


class ExecCredential:
    """A credential plugin (client.authentication.k8s.io): run when needed, its answer kept until it expires."""

    def __init__(self, plugin: ExecPlugin, entry: Entry, clock: Clock, tls: ssl.SSLContext | None, cluster: object):
        if plugin.interactive_mode == "Always":
            raise entry.error("exec.interactiveMode", "is Always, but services have no terminal")
        self._plugin = plugin
        self._entry = entry
        self._clock = clock
        self._tls = tls
        self._info = {
            "kind": "ExecCredential",
            "apiVersion": plugin.api_version,
            "spec": {"interactive": False, **({"cluster": cluster} if plugin.provide_cluster_info else {})},
        }
        self._value: str | None = None
        self._expires: datetime | None = None
        self._lock = asyncio.Lock()

    async def authorization(self) -> str:
        async with self._lock:
            if self._value is None or self._expired():
                await self._renew()
            return self._value or ""

    def reject(self) -> None:
        self._value = None

    def _expired(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires - EXPIRY_MARGIN

    async def _renew(self) -> None:
        output = await self._run()
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.MsgspecError as error:
            raise self._error(f"answered with something else than an ExecCredential: {error}") from error
        if answer.kind != "ExecCredential" or answer.api_version != self._plugin.api_version:
            raise self._error(f"answered {answer.kind} of {answer.api_version}, wanted {self._plugin.api_version}")
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._error("answered without a token or certificate")
        if status.client_certificate_data and self._tls is not None:
            load_client_certificate(self._tls, status.client_certificate_data.encode(), status.client_key_data.encode())
        self._value = f"Bearer {status.token}" if status.token else ""
        self._expires = status.expiration_timestamp

    async def _run(self) -> bytes:
        command = self._plugin.command
        if os.sep in command:
            command = str(self._entry.path(command))
        env = {**os.environ, **{one.name: one.value for one in self._plugin.env or []}}
        env["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(self._info).decode()
        pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                command, *(self._plugin.args or []), env=env, stdin=quiet, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise self._error(f"cannot be started: {error.strerror}. {self._plugin.install_hint}".rstrip()) from error
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                output, errors = await process.communicate()
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise self._error(f"did not answer within {EXEC_SECONDS:.0f} s") from error
        if process.returncode != 0:
            raise self._error(f"failed with exit code {process.returncode}: {errors.decode(errors='replace').strip()}")
        return output

    def _error(self, problem: str) -> ConfigError:
        return self._entry.error("exec", f"{self._plugin.command} {problem}")


def load_client_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use a client certificate from memory. OpenSSL reads files only, so it passes through a private temporary one."""
    with tempfile.NamedTemporaryFile(prefix="flotilla-") as file:
        file.write(certificate.rstrip(b"\n") + b"\n" + key)
        file.flush()
        tls.load_cert_chain(file.name)
