"""Clients that may call admission, where the apiserver shows a certificate."""

import ssl
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from flotilla_cli.local import HOST
from flotilla_common.api.admission.review import ALLOWED, Answer, Request
from flotilla_common.clock import SystemClock
from flotilla_common.health import bind
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server import tls
from flotilla_webhook.server.http_server import build
from tests.support.certificates import Authority
from tests.support.fake_clock import FakeClock


async def allow(_: Request) -> Answer:
    return ALLOWED


@pytest.mark.parametrize(
    ("callers", "code"), [((), 200), ((HOST, "other"), 200), (("kube-apiserver",), 403)], ids=["any", "its", "another"]
)
async def test_only_who_shows_a_certificate_is_asked_for_admission(
    tmp_path: Path, callers: tuple[str, ...], code: int
) -> None:
    """The apiserver's, where it is configured; probes and conversions are answered without."""
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    certificate = tls.Certificate(str(theirs.file))
    certificate.context.load_cert_chain(ours.pair())
    sock = bind(0, "webhook", HOST)
    app = build({"/allow": allow}, lambda body: b"{}", Metrics(CollectorRegistry()), SystemClock(), callers=callers)

    async def ask(path: str, pair: Path | None = None) -> int:
        trust = ssl.create_default_context(cafile=str(ours.file))
        if pair is not None:
            trust.load_cert_chain(pair)
        url = f"https://{HOST}:{sock.getsockname()[1]}{path}"
        review = b'{"apiVersion":"admission.k8s.io/v1","request":{"uid":"u"}}'
        method, json = "GET" if path == "/healthz" else "POST", {"content-type": "application/json"}
        async with aiohttp.request(method, url, headers=json, ssl=trust, data=review) as reply:
            return reply.status

    async def serves() -> bool:
        try:
            return await ask("/healthz") == 200
        except aiohttp.ClientConnectorError:
            return False

    async with tls.serving(app, certificate, sock, FakeClock()) as server:
        while not await serves():
            assert not server.done()
        assert await ask("/allow", theirs.pair()) == code
        assert [await ask(path) for path in ("/allow", "/convert", "/healthz")] == [403, 200, 200]
        with pytest.raises(aiohttp.ClientError):
            await ask("/allow", ours.pair())
        theirs.file.write_bytes(theirs.file.read_bytes() + ours.file.read_bytes())
        certificate.reload_authorities()
        assert await ask("/allow", ours.pair()) == code, "their authority was renewed"
