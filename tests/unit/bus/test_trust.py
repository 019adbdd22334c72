"""The servers that a bus client trusts."""

import ssl
from pathlib import Path

import pytest

from flotilla_common.bus.credentials import Trust
from tests.support.certificates import Authority


def handshake(trust: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Let both shake hands in memory. Raises ssl.SSLError if the client does not trust the server."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        trust.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


def test_the_file_is_read_anew_for_every_handshake(tmp_path: Path) -> None:
    old, new, believed = Authority(tmp_path, "old"), Authority(tmp_path, "new"), tmp_path / "believed.crt"
    believed.write_bytes(old.file.read_bytes())
    trust = Trust(str(believed))
    handshake(trust, old.server_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(trust, new.server_context())
    believed.write_bytes(new.file.read_bytes())
    handshake(trust, new.server_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(trust, old.server_context())


def test_an_authority_may_stand_beside_a_seed(tmp_path: Path) -> None:
    """As in a node's credentials. OpenSSL mistakes the end of a seed for a broken certificate."""
    ours, seed = Authority(tmp_path, "ours"), "-----BEGIN USER NKEY SEED-----\nSU\n------END USER NKEY SEED------\n"
    creds = tmp_path / "n1.creds"
    for content in (seed + ours.file.read_text(), ours.file.read_text() + seed):
        creds.write_text(content)
        handshake(Trust(str(creds)), ours.server_context())


def test_a_file_that_nobody_can_believe_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Trust(str(tmp_path / "missing.crt"))
    empty = tmp_path / "empty.crt"
    empty.touch()
    with pytest.raises(ssl.SSLError):
        Trust(str(empty))
