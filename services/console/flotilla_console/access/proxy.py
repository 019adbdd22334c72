"""Signing in by the headers of an authenticating proxy, as the apiserver does it with its requestheader flags.

Anybody can send such headers, so they count only with the proxy's secret, or on a connection with its certificate.
"""

import hmac
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.requests import Request

from flotilla_console.access.certificates import common_name
from flotilla_console.access.files import FileError, lines_of
from flotilla_console.access.identity import Identity, authenticated
from flotilla_console.access.settings import ProxySettings

LEAST_SECRET_BYTES = 16


class ProxyHeaders:
    """Reads the identity from headers that the proxy has set."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._secrets = _secrets(settings.secret_file)

    def identity(self, request: Request) -> Identity | None:
        """Return who signed in at the proxy; None if it is not the proxy's request, or names no user."""
        settings, headers = self._settings, request.headers
        user = headers.get(settings.user_header, "")
        if not user or not self._is_proxy(request):
            return None
        return authenticated(user, self._groups(headers), extra=_extra(headers, settings.extra_header_prefix))

    def refused(self, request: Request) -> bool:
        """Report whether the request has headers of a proxy but not its secret or certificate."""
        return bool(request.headers.get(self._settings.user_header)) and not self._is_proxy(request)

    def _is_proxy(self, request: Request) -> bool:
        given = request.headers.get(self._settings.secret_header, "").encode(errors="replace")
        matches = [hmac.compare_digest(secret, given) for secret in self._secrets]
        name = common_name(request.scope)
        return any(matches) or (name != "" and name in self._settings.allowed_names)

    def _groups(self, headers: Headers) -> tuple[str, ...]:
        values, separator = headers.getlist(self._settings.group_header), self._settings.group_separator
        if separator:
            values = [part for value in values for part in value.split(separator)]
        return tuple(group for value in values if (group := value.strip()))


def _extra(headers: Headers, prefix: str) -> dict[str, tuple[str, ...]]:
    """Return the extra values; their keys are escaped like a URL, because header names cannot hold every letter."""
    lowered = prefix.lower()
    names = dict.fromkeys(name for name in headers if lowered and name.startswith(lowered))
    return {unquote(name[len(lowered) :]): tuple(headers.getlist(name)) for name in names}


def _secrets(file: str) -> tuple[bytes, ...]:
    if not file:
        return ()
    found = lines_of(file, "file of the proxy's secret")
    if min(map(len, found)) < LEAST_SECRET_BYTES:
        raise FileError(f"file of the proxy's secret {file}: a secret has at least {LEAST_SECRET_BYTES} bytes")
    return found
