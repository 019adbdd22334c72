"""TLS of the console's port, with a certificate that its owner may renew while the console runs."""

import ssl
from pathlib import Path

import structlog

from flotilla_common.clock import Clock
from flotilla_common.settings import SettingsError

LOOK_SECONDS = 60.0
"""Seconds between two looks whether the files have changed."""

_log = structlog.get_logger()


class Certificate:
    """The TLS context of the port. Handshakes use the chain that was loaded last; open connections go on."""

    def __init__(self, certificate: str, key: str, client_authority: str = "") -> None:
        """Load the files. `client_authority`: the CA of client certificates, which are asked for but not required.

        Raises SettingsError for a file that cannot be used.
        """
        self._files = Path(certificate), Path(key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if client_authority:
                self.context.load_verify_locations(client_authority)
                self.context.verify_mode = ssl.CERT_OPTIONAL
            self._loaded = self._load()
        except OSError as error:  # ssl.SSLError is one
            raise SettingsError([f"the console's certificate, key or client CA cannot be used: {error}"]) from error

    async def keep_current(self, clock: Clock) -> None:
        """Load the files again whenever they change, until cancelled."""
        while True:
            await clock.sleep(LOOK_SECONDS)
            try:
                if self._read() != self._loaded:
                    self._loaded = self._load()
                    _log.info("the console's certificate was renewed")
            except OSError as error:  # half written, or of another key: the next look may find both
                _log.warning("the console's renewed certificate cannot be used", error=str(error))

    def _read(self) -> tuple[bytes, ...]:
        return tuple(file.read_bytes() for file in self._files)

    def _load(self) -> tuple[bytes, ...]:
        content = self._read()
        self.context.load_cert_chain(*self._files)
        return content


def certificate_of(certificate: str, key: str, client_authority: str) -> Certificate | None:
    """Return the certificate that settings name; None: plain HTTP, behind a proxy."""
    return Certificate(certificate, key, client_authority) if certificate else None
