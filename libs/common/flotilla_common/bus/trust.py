"""Whom we take for a NATS server: TLS with an authority of the installation's own.

It is the servers that ask for TLS (`tls {}` in their configuration). Their certificates and authorities are renewed
while everything runs, so the file with the authorities is read anew for every handshake.
"""

import ssl
from typing import Any


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
        return ssl.create_default_context(cafile=self.file)
