"""The certificate of an embedded bus: its names, its authority, its renewal."""

import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509

from flotilla_cli import certificates
from flotilla_cli.certificates import LIFETIME, RENEW, Authority, own_names
from tests.support.fake_clock import FakeClock
from tests.unit.bus.test_trust import handshake


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "ca.crt", tmp_path / "ca.key", "flotilla-bus")
    made.make(FakeClock())
    return made


def serving(pair: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    return context


def test_it_is_believed_by_whoever_has_the_authority_and_by_nobody_else(authority: Authority, tmp_path: Path) -> None:
    pair, clock = tmp_path / "server.pem", FakeClock()
    authority.issue_server(pair, ["127.0.0.1"], clock)
    assert pair.stat().st_mode & 0o777 == 0o600
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    trust.verify_flags |= ssl.VERIFY_X509_STRICT  # as Python does from 3.13 on
    handshake(trust, serving(pair))
    authority.issue_server(pair, ["10.0.0.1"], clock)
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        handshake(trust, serving(pair))


def test_it_stays_while_it_is_for_all_names_and_lasts(authority: Authority, tmp_path: Path) -> None:
    pair, clock = tmp_path / "server.pem", FakeClock()

    def issued(*hosts: str) -> bytes:
        authority.issue_server(pair, hosts, clock)
        return pair.read_bytes()

    first = issued("bus.example", "10.0.0.1")
    assert issued("10.0.0.1", "bus.example") == issued("10.0.0.1") == first
    second = issued("10.0.0.2")
    assert second != first
    names = x509.load_pem_x509_certificate(second).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert list(names.value) == [x509.IPAddress(ip_address("10.0.0.2"))]
    clock.time += (LIFETIME - RENEW - timedelta(days=1)).total_seconds()
    assert issued("10.0.0.2") == second
    clock.time += timedelta(days=2).total_seconds()
    assert issued("10.0.0.2") != second


ROUTES = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.0.0.0
        /24 link UNICAST
     |-- 10.0.0.7
        /32 host LOCAL
     |-- 10.0.0.255
        /32 link BROADCAST
Local:
     |-- 10.0.0.7
        /32 host LOCAL
"""


def test_on_all_addresses_it_is_for_each_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fib_trie").write_text(ROUTES)
    (tmp_path / "if_inet6").write_text("fd000000000000000000000000000002 02 40 00 80 eth0\n")
    monkeypatch.setattr(certificates, "ROUTES4", tmp_path / "fib_trie")
    monkeypatch.setattr(certificates, "ADDRESSES6", tmp_path / "if_inet6")
    monkeypatch.setattr(certificates.socket, "gethostname", lambda: "host")
    monkeypatch.setattr(certificates.socket, "getfqdn", lambda: "host.example")
    assert own_names("") == ["localhost", "127.0.0.1", "10.0.0.7", "fd00::2", "host", "host.example"]
    assert own_names("bus.example") == ["localhost", "127.0.0.1", "bus.example"]


def test_where_the_kernel_does_not_tell_the_own_name_leads_to_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(certificates, "ROUTES4", tmp_path / "none")
    monkeypatch.setattr(certificates.socket, "gethostname", lambda: "localhost")
    assert "127.0.0.1" in own_names("")
