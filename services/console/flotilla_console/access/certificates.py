"""The client certificate of a connection, which the server does not pass on by itself.

The listener verifies the certificate by its CA (`ssl_ca_certs` with `ssl.CERT_OPTIONAL`); here its name is read.
"""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SCOPE_KEY = "flotilla.client_common_name"


class CertificateProtocol(HttpToolsProtocol):
    """The HTTP protocol of uvicorn, with the common name of the verified client certificate in the scope."""

    _common_name = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connection = cast("ssl.SSLObject | None", transport.get_extra_info("ssl_object"))
        if connection is not None and connection.context.verify_mode != ssl.CERT_NONE:
            self._common_name = name_of(cast("Mapping[str, object] | None", connection.getpeercert()) or {})

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, object]", self.scope)[SCOPE_KEY] = self._common_name


def common_name(scope: Mapping[str, object]) -> str:
    """Return the common name of the verified client certificate; empty if there is no certificate."""
    return str(scope.get(SCOPE_KEY, ""))


def name_of(certificate: Mapping[str, object]) -> str:
    """Return the common name in a certificate as `ssl` decodes it; empty if it has none or several."""
    names = list(_names(certificate))
    return names[0] if len(names) == 1 else ""


def _names(certificate: Mapping[str, object]) -> Iterator[str]:
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get("subject", ()))
    return (value for part in subject for name, value in part if name == "commonName")
