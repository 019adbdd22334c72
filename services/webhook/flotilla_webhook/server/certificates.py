"""The webhook's own CA and server certificate (webhooks.md §4): issued, checked, renewed. No I/O here.

Our own keys are of P-256. The apiserver opens a connection for every call beyond those that it keeps, and a handshake
with an RSA key costs as much as the call itself. Keys from elsewhere may be RSA.
"""

import ipaddress
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_NAME = "webhook-cert-ca"
_LIFETIME = timedelta(days=3650)
_CA_REUSE = timedelta(days=365)  # a CA that ends sooner is replaced together with the certificate
_SKEW = timedelta(minutes=5)  # the apiserver's clock may be behind ours

PrivateKey = EllipticCurvePrivateKey | RSAPrivateKey


class Bundle(msgspec.Struct, frozen=True):
    """A CA and the server certificate that it signed, all PEM. The CA's key is empty if it is managed elsewhere."""

    ca_key: bytes
    ca_cert: bytes
    key: bytes
    cert: bytes


def issue(host: str, now: datetime, previous: Bundle | None = None) -> Bundle:
    """Issue a server certificate for the host; the previous CA is kept if it is good for another year."""
    ca = _reusable_ca(previous, now) if previous else None
    ca_key, ca_cert = ca or _new_ca(now)
    key = generate_private_key(SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
    cert = (
        _builder(_name(host), ca_cert.subject, key, now)
        .add_extension(x509.SubjectAlternativeName(_alternative_names(host)), critical=False)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return Bundle(_key_pem(ca_key), _cert_pem(ca_cert), _key_pem(key), _cert_pem(cert))


def problem(bundle: Bundle, host: str, at: datetime) -> str:
    """Return why the bundle cannot serve the host at this time, or "" if it can."""
    try:
        ca = x509.load_pem_x509_certificate(bundle.ca_cert)
        cert = x509.load_pem_x509_certificate(bundle.cert)
        key = _load_key(bundle.key)
        cert.verify_directly_issued_by(ca)
        names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound) as fault:
        return f"it cannot be read or verified: {fault or type(fault).__name__}"
    if cert.public_key() != key.public_key():
        return "key and certificate do not belong together"
    if _alternative_names(host)[-1] not in names:
        return f"it is not for {host}"
    for what, one in (("CA", ca), ("certificate", cert)):
        if not one.not_valid_before_utc <= at <= one.not_valid_after_utc:
            return f"the {what} is valid from {one.not_valid_before_utc} to {one.not_valid_after_utc} only"
    return ""


def end(cert: bytes) -> datetime:
    """Return when a certificate ends. Raises ValueError if it cannot be parsed."""
    return x509.load_pem_x509_certificate(cert).not_valid_after_utc


def _reusable_ca(bundle: Bundle, now: datetime) -> tuple[PrivateKey, x509.Certificate] | None:
    try:
        key = _load_key(bundle.ca_key)
        cert = x509.load_pem_x509_certificate(bundle.ca_cert)
    except (ValueError, TypeError):
        return None
    fits = cert.public_key() == key.public_key() and cert.not_valid_before_utc <= now
    return (key, cert) if fits and cert.not_valid_after_utc >= now + _CA_REUSE else None


def _new_ca(now: datetime) -> tuple[PrivateKey, x509.Certificate]:
    key = generate_private_key(SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, True, False, False, False)
    cert = (
        _builder(_name(CA_NAME), _name(CA_NAME), key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key, cert


def _builder(subject: x509.Name, issuer: x509.Name, key: PrivateKey, now: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _alternative_names(host: str) -> list[x509.GeneralName]:
    """Return `localhost`, for the readiness check, and last the host itself."""
    try:
        return [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))]
    except ValueError:
        return [x509.DNSName("localhost"), x509.DNSName(host)]


def _name(common: str) -> x509.Name:
    limit = 64  # X.509's bound for a common name; only the alternative names are checked
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:limit])])


def _load_key(pem: bytes) -> PrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, PrivateKey):
        raise TypeError("the key is neither one of an elliptic curve nor RSA")
    return key


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _cert_pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)
