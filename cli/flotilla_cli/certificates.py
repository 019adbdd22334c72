"""Certificate authorities of our own, and the certificates that they sign.

With client certificates kubelets and the apiserver of a local cluster authenticate each other. Unlike tokens, they can
be issued while the apiserver runs, so that a node can be added at any time. The certificate of an embedded bus is for
node agents, which trust only its authority.
"""

import ipaddress
import re
import socket
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from ipaddress import IPv6Address
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from flotilla_cli.local import HOST, write_private
from flotilla_common.clock import Clock

LIFETIME = timedelta(days=3650)
SLACK = timedelta(hours=1)  # for clocks that are set back
RENEW = timedelta(days=180)  # so long before its end a server's certificate is replaced when the server starts


class Authority(msgspec.Struct, frozen=True):
    """An authority: its certificate and its key, as files."""

    certificate: Path
    key: Path
    name: str = "flotilla-clients"

    def make(self, clock: Clock) -> None:
        """Make the authority, unless it exists."""
        if self.certificate.exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name.from_rfc4514_string(f"CN={self.name}")
        built = (
            _builder(subject, subject, key, clock.now())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_SIGNS, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        write_private(self.key, _pem(key))
        write_private(self.certificate, built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, path: Path, user: str, group: str, clock: Clock) -> None:
        """Write a key with its certificate into one file, unless it exists."""
        if not path.exists():
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
            self._sign(path, x509.Name.from_rfc4514_string(f"CN={user},O={group}"), [usage], clock)

    def issue_server(self, path: Path, hosts: Sequence[str], clock: Clock) -> None:
        """Write key and certificate of a server with these names and addresses into one file.

        An existing certificate for all of them stays, unless it expires soon.
        """
        names = [_alternative_name(host) for host in hosts]
        if not (path.exists() and _serves(path, names, clock.now())):
            # Servers of one bus are each other's clients.
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
            subject = x509.Name.from_rfc4514_string(f"CN={self.name}-server")
            self._sign(path, subject, [usage, x509.SubjectAlternativeName(names)], clock)

    def _sign(self, path: Path, subject: x509.Name, extensions: Sequence[x509.ExtensionType], clock: Clock) -> None:
        issuer = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        signer = serialization.load_pem_private_key(self.key.read_bytes(), password=None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        built = _builder(subject, issuer.subject, key, clock.now())
        for extension in (*extensions, x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())):
            built = built.add_extension(extension, critical=False)
        signed = built.sign(signer, hashes.SHA256())
        write_private(path, signed.public_bytes(serialization.Encoding.PEM) + _pem(key))


_SIGNS = x509.KeyUsage(True, False, False, False, False, True, False, False, False)
"""What an authority's key is for: signatures, also of certificates."""


def _serves(path: Path, names: Sequence[x509.GeneralName], now: datetime) -> bool:
    held = x509.load_pem_x509_certificate(path.read_bytes())
    its = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) <= set(its) and held.not_valid_after_utc > now + RENEW


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


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


ROUTES4 = Path("/proc/net/fib_trie")
ADDRESSES6 = Path("/proc/net/if_inet6")
_LOCAL4 = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")


def own_names(host: str) -> list[str]:
    """Return the names of a server that listens on this host, or on all addresses if it is empty."""
    named = [host] if host else [*_addresses(), socket.gethostname(), socket.getfqdn()]
    return list(dict.fromkeys(["localhost", HOST, *filter(None, named)]))


def _addresses() -> Iterator[str]:
    if not ROUTES4.exists():
        found = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        yield from (str(address[0]).partition("%")[0] for *_, address in found)
        return
    yield from sorted(set(_LOCAL4.findall(ROUTES4.read_text(encoding="ascii"))))
    if ADDRESSES6.exists():  # not where IPv6 is switched off
        lines = ADDRESSES6.read_text(encoding="ascii").splitlines()
        yield from (str(IPv6Address(int(line.split()[0], 16))) for line in lines)
