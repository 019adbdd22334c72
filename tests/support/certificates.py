"""A certificate authority of a test's own, whose server can change its certificate while it runs."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from flotilla_cli.local import HOST

DAY = timedelta(days=1)


class Authority:
    """Signs certificates for this machine. `file` holds what clients have to trust."""

    def __init__(self, folder: Path, name: str = "test") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(*[False] * 5, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False)
        self._certificate = (
            _builder(self._name, self._name)
            .public_key(self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}-ca.crt"
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def server_context(self) -> ssl.SSLContext:
        """Return a server's TLS context with a fresh certificate; `renew` replaces the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.renew(context)
        return context

    def renew(self, context: ssl.SSLContext) -> None:
        """Have the context show a new certificate of this authority from the next handshake on."""
        context.load_cert_chain(self.pair())

    def pair(self, lasts: timedelta = DAY) -> Path:
        """Create a file with a new certificate for this machine and its key; a negative time makes it expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)]), self._name, lasts)
            .public_key(key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = self._folder / f"server-{certificate.serial_number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pair.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
        return pair


def _builder(subject: x509.Name, issuer: x509.Name, lasts: timedelta = DAY) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + lasts)
    )
