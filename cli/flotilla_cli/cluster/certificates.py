"""Client certificates of the local set: the apiserver knows kubelets by them, and kubelets the apiserver.

Unlike tokens, they can be issued while the apiserver runs: a node can be added at any time.
"""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from flotilla_cli.cluster.layout import write_private
from flotilla_common.clock import Clock

LIFETIME = timedelta(days=3650)
SLACK = timedelta(hours=1)  # for clocks that are set back


class Authority(msgspec.Struct, frozen=True):
    """The authority of one set: its certificate and its key, as files."""

    certificate: Path
    key: Path

    def make(self, clock: Clock) -> None:
        """Make it, unless it is there."""
        if self.certificate.exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name.from_rfc4514_string("CN=flotilla-clients")
        built = _builder(subject, subject, key, clock.now()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        write_private(self.key, _pem(key))
        write_private(self.certificate, built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, path: Path, user: str, group: str, clock: Clock) -> None:
        """Write a key with its certificate into one file, unless it is there."""
        if path.exists():
            return
        issuer = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key(self.key.read_bytes(), password=None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name.from_rfc4514_string(f"CN={user},O={group}")
        built = _builder(subject, issuer.subject, key, clock.now()).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        signed = built.sign(signer, hashes.SHA256())
        write_private(path, signed.public_bytes(serialization.Encoding.PEM) + _pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + LIFETIME)
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
