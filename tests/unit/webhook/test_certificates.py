"""The certificate's life (webhooks.md §4): issued, checked, stored, swapped in, and rotated under a running server."""

import asyncio
import base64
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import aiohttp
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.x509.oid import NameOID
from fastapi import FastAPI

from flotilla_common.api.resources import SECRET
from flotilla_common.clock import SystemClock
from flotilla_common.health import bind
from flotilla_webhook.server import tls
from flotilla_webhook.server.certificates import Bundle, issue, problem
from flotilla_webhook.server.stores import (
    ExternalStore,
    FileStore,
    SecretStore,
    StoreError,
    files_of,
    read_files,
    write_files,
)
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOST = "kruise-webhook-service.kruise-system.svc"
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return issue(HOST, NOW)


def test_certificate(bundle: Bundle) -> None:
    cert = x509.load_pem_x509_certificate(bundle.cert)
    ca = x509.load_pem_x509_certificate(bundle.ca_cert)
    assert ca.subject.rfc4514_string() == "CN=webhook-cert-ca"
    assert cert.subject.rfc4514_string() == f"CN={HOST}"
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", HOST]
    assert cert.not_valid_after_utc == ca.not_valid_after_utc == NOW + 3650 * DAY


def test_an_address_is_an_address() -> None:
    cert = x509.load_pem_x509_certificate(issue("10.0.0.1", NOW).cert)
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.1")]


@pytest.mark.parametrize(
    ("host", "days", "expected"),
    [
        pytest.param(HOST, 0, "", id="valid"),
        pytest.param(HOST, 3649, "", id="valid on the last day"),
        pytest.param(HOST, 3651, "only", id="expired"),
        pytest.param(HOST, -1, "only", id="not yet"),
        pytest.param("other.svc", 0, "not for other.svc", id="other host"),
    ],
)
def test_problem(bundle: Bundle, host: str, days: int, expected: str) -> None:
    found = problem(bundle, host, NOW + days * DAY)
    assert expected in found
    assert bool(found) == bool(expected)


def with_rsa_keys() -> Bundle:
    """Return a bundle like those of other tools: our certificates with RSA keys."""
    ca_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "theirs")])

    def builder(subject: x509.Name, public: rsa.RSAPublicKey) -> x509.CertificateBuilder:
        made = x509.CertificateBuilder(ca_name, subject, public, x509.random_serial_number())
        return made.not_valid_before(NOW - DAY).not_valid_after(NOW + 3650 * DAY)

    ca = builder(ca_name, ca_key.public_key()).add_extension(x509.BasicConstraints(True, None), critical=True)
    cert = builder(x509.Name([]), key.public_key())
    cert = cert.add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=True)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    keys = [one.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) for one in (ca_key, key)]
    certs = [one.sign(ca_key, hashes.SHA256()).public_bytes(pem) for one in (ca, cert)]
    return Bundle(keys[0], certs[0], keys[1], certs[1])


def test_rsa_keys_of_others_serve_and_sign() -> None:
    theirs = with_rsa_keys()
    assert problem(theirs, HOST, NOW) == ""
    renewed = issue(HOST, NOW, theirs)
    assert renewed.ca_cert == theirs.ca_cert
    assert problem(renewed, HOST, NOW) == ""


def test_keys_of_no_use_are_refused(bundle: Bundle) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    assert "neither" in problem(msgspec.structs.replace(bundle, key=pem), HOST, NOW)


def test_foreign_parts_do_not_fit(bundle: Bundle) -> None:
    other = issue(HOST, NOW)
    assert problem(msgspec.structs.replace(bundle, key=other.key), HOST, NOW)
    assert problem(msgspec.structs.replace(bundle, ca_cert=other.ca_cert), HOST, NOW)
    assert problem(msgspec.structs.replace(bundle, cert=b"junk"), HOST, NOW)


def test_row_17_the_ca_is_kept_while_it_is_good_for_a_year(bundle: Bundle) -> None:
    kept = issue(HOST, NOW + 3000 * DAY, bundle)
    assert (kept.ca_cert, kept.ca_key) == (bundle.ca_cert, bundle.ca_key)
    assert kept.cert != bundle.cert
    assert problem(kept, HOST, NOW + 3001 * DAY) == ""
    assert issue(HOST, NOW + 3400 * DAY, bundle).ca_cert != bundle.ca_cert
    assert issue(HOST, NOW, msgspec.structs.replace(bundle, ca_key=b"junk")).ca_cert != bundle.ca_cert


async def test_secret_store(bundle: Bundle) -> None:
    cluster = FakeApi()
    store = SecretStore(cluster.api, "ns", "certs")
    assert await store.load() is None
    assert await store.save(bundle)
    assert await store.load() == bundle
    data = cluster.named(SECRET, "ns", "certs")["data"]
    assert set(data) == {"ca-key.pem", "ca-cert.pem", "key.pem", "cert.pem", "tls.key", "tls.crt"}


async def test_the_slower_replica_takes_what_the_faster_one_stored(bundle: Bundle) -> None:
    cluster = FakeApi()
    first, second = SecretStore(cluster.api, "ns", "certs"), SecretStore(cluster.api, "ns", "certs")
    assert await first.load() is None
    assert await second.load() is None
    assert await first.save(bundle)
    other = issue(HOST, NOW)
    assert not await second.save(other)
    assert await second.load() == bundle
    assert await first.load() == bundle
    assert await first.save(other)
    assert not await second.save(bundle)


async def test_an_empty_secret_is_no_certificate(bundle: Bundle) -> None:
    cluster = FakeApi()
    cluster.put(SECRET, {"metadata": {"name": "certs", "namespace": "ns"}, "data": {"cert.pem": "%%%", "mine": "aGk="}})
    store = SecretStore(cluster.api, "ns", "certs")
    assert await store.load() is None
    assert await store.save(bundle)
    assert cluster.named(SECRET, "ns", "certs")["data"]["mine"] == "aGk="


def filled(*names: str, bundle: Bundle) -> FakeApi:
    """Return a cluster whose Secret others have filled with these keys."""
    values = {"ca.key": bundle.ca_key, "ca.crt": bundle.ca_cert, "tls.key": bundle.key, "tls.crt": bundle.cert}
    data = {name: base64.b64encode(values[name]).decode() for name in names}
    cluster = FakeApi()
    cluster.put(SECRET, {"metadata": {"name": "certs", "namespace": "ns"}, "data": data})
    return cluster


async def test_external_store(bundle: Bundle) -> None:
    full = ExternalStore(filled("ca.key", "ca.crt", "tls.key", "tls.crt", bundle=bundle).api, "ns", "certs")
    assert await full.load() == bundle
    with pytest.raises(StoreError):
        await full.save(bundle)


async def test_cert_manager_keeps_the_authoritys_key_to_itself(tmp_path: Path, bundle: Bundle) -> None:
    store = ExternalStore(filled("ca.crt", "tls.key", "tls.crt", bundle=bundle).api, "ns", "certs")
    loaded = await store.load()
    assert loaded == msgspec.structs.replace(bundle, ca_key=b"")
    assert write_files(tmp_path / "certs", files_of(loaded))
    assert not write_files(tmp_path / "certs", files_of(loaded))
    assert "ca-key.pem" not in {path.name for path in (tmp_path / "certs").iterdir()}


@pytest.mark.parametrize("names", [(), ("tls.key", "tls.crt"), ("ca.crt", "tls.crt"), ("ca.crt", "tls.key")])
async def test_a_secret_that_is_not_filled_yet_is_waited_for(names: tuple[str, ...], bundle: Bundle) -> None:
    store = ExternalStore(filled(*names, bundle=bundle).api, "ns", "certs")
    with pytest.raises(StoreError, match=r"ns/certs does not hold ca\.crt, tls\.key, tls\.crt yet"):
        await store.load()
    with pytest.raises(StoreError, match="does not hold"):
        await ExternalStore(FakeApi().api, "ns", "certs").load()


async def test_file_store(tmp_path: Path, bundle: Bundle) -> None:
    store = FileStore(tmp_path / "certs")
    assert await store.load() is None
    assert await store.save(bundle)
    assert await store.load() == bundle


def test_files_change_all_at_once(tmp_path: Path, bundle: Bundle) -> None:
    directory = tmp_path / "certs"
    assert write_files(directory, files_of(bundle))
    assert not write_files(directory, files_of(bundle))
    (directory / "tls.key").unlink()
    (directory / "tls.key").write_bytes(b"put here by hand")
    other = files_of(issue(HOST, NOW))
    assert write_files(directory, other)
    assert read_files(directory, other) == other
    assert (directory / "tls.key").stat().st_mode & 0o077 == 0
    assert len([path for path in directory.glob("..*") if path.is_dir() and not path.is_symlink()]) == 1


async def shown(port: int) -> bytes:
    """Return the certificate that a new connection is shown."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    found = cast("ssl.SSLObject", writer.get_extra_info("ssl_object")).getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    assert found
    return found


async def test_a_running_server_takes_a_new_certificate(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    first, second = issue("localhost", now), issue("localhost", now)
    directory = tmp_path / "certs"
    certificate = tls.Certificate()
    write_files(directory, files_of(first))
    certificate.use(directory)
    app = FastAPI()
    app.add_api_route("/healthz", lambda: "ok")
    sock = bind(0, "webhook", "127.0.0.1")
    port = sock.getsockname()[1]
    ca = directory / "ca-cert.pem"
    async with tls.serving(app, certificate, sock, FakeClock()) as server:
        while await tls.probe(port, ca):
            assert not server.done()
        assert ssl.DER_cert_to_PEM_cert(await shown(port)).encode() == first.cert

        write_files(directory, files_of(second))
        assert "CERTIFICATE_VERIFY_FAILED" in await tls.probe(port, ca)
        certificate.use(directory)
        assert ssl.DER_cert_to_PEM_cert(await shown(port)).encode() == second.cert
        assert await tls.probe(port, ca) == ""


async def test_a_server_that_stops_asks_its_clients_to_go(tmp_path: Path) -> None:
    """No client sends into a connection that is just being closed; new ones are answered meanwhile."""
    directory = tmp_path / "certs"
    certificate = tls.Certificate()
    write_files(directory, files_of(issue("localhost", datetime.now(UTC))))
    certificate.use(directory)
    app = FastAPI()
    app.add_api_route("/healthz", lambda: "ok")
    sock = bind(0, "webhook", "127.0.0.1")
    url = f"https://localhost:{sock.getsockname()[1]}/healthz"
    trust = ssl.create_default_context(cafile=directory / "ca-cert.pem")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        async with tls.serving(app, certificate, sock, SystemClock()) as server:
            while await tls.probe(sock.getsockname()[1], directory / "ca-cert.pem"):
                assert not server.done()
            async with session.get(url) as reply:
                assert "connection" not in reply.headers
            stopping = asyncio.create_task(_until_asked_to_go(session, url))
        assert await stopping == 200


async def _until_asked_to_go(session: aiohttp.ClientSession, url: str) -> int:
    """Ask over and over again; the code of the answer that ends the connection."""
    while True:
        async with session.get(url) as reply:
            assert reply.status == 200
            if reply.headers.get("connection") == "close":
                return reply.status


def test_a_taken_port_is_named() -> None:
    with bind(0, "webhook", "127.0.0.1") as sock:
        sock.listen()
        port = sock.getsockname()[1]
        with pytest.raises(OSError, match=f"webhook port {port}"):
            bind(port, "webhook", "127.0.0.1")
