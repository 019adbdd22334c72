"""The client certificate of a proxy: verified by the listener, and trusted by its name."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from flotilla_console.access.certificates import CertificateProtocol, name_of
from flotilla_console.access.proxy import ProxyHeaders
from flotilla_console.access.settings import ProxySettings
from tests.support.certificates import Authority

NAME = "127.0.0.1"  # the common name of the certificates of `Authority`


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (((("commonName", "proxy"),),), "proxy"),
        (((("organizationName", "acme"),), (("commonName", "proxy"),)), "proxy"),
        (((("commonName", "proxy"),), (("commonName", "other"),)), ""),
        (((("commonName", "proxy"), ("commonName", "other")),), ""),
        ((), ""),
    ],
)
def test_the_name_in_a_certificate(subject: object, name: str):
    assert name_of({"subject": subject}) == name


def test_without_a_certificate_there_is_no_name():
    assert name_of({}) == ""


@asynccontextmanager
async def listener(folder: Path, authority: Authority, settings: ProxySettings) -> AsyncIterator[str]:
    """Serve who makes a request, by its headers, on a port of its own."""
    proxy = ProxyHeaders(settings)

    async def whoami(request: Request) -> Response:
        found = proxy.identity(request)
        return PlainTextResponse(found.user if found else "")

    config = uvicorn.Config(
        Starlette(routes=[Route("/", whoami)]),
        host=NAME,
        port=0,
        http=CertificateProtocol,
        lifespan="off",
        log_config=None,
        ssl_certfile=str(authority.pair()),
        ssl_ca_certs=str(authority.file),
        ssl_cert_reqs=ssl.CERT_OPTIONAL,
    )
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: CertificateProtocol(config, uvicorn.server.ServerState(), {}), NAME, 0, ssl=config.ssl
    )
    async with server:
        yield f"https://{NAME}:{server.sockets[0].getsockname()[1]}/"


async def seen(url: str, trusted: Authority, pair: Path | None) -> str:
    """Return who the listener sees in a request of a proxy with this certificate."""
    tls = ssl.create_default_context(cafile=str(trusted.file))
    if pair is not None:
        tls.load_cert_chain(pair)
    async with httpx2.AsyncClient(verify=tls) as client:
        return (await client.get(url, headers={"X-Remote-User": "jo"})).text


async def test_the_certificate_of_the_proxy_counts_instead_of_a_secret(tmp_path: Path):
    ours, others = Authority(tmp_path), Authority(tmp_path, "others")
    async with listener(tmp_path, ours, ProxySettings(allowed_names=(NAME,))) as url:
        assert await seen(url, ours, ours.pair()) == "jo"
        assert await seen(url, ours, None) == ""
        with pytest.raises(httpx2.TransportError):
            await seen(url, ours, others.pair())


async def test_a_certificate_of_another_name_is_not_trusted(tmp_path: Path):
    ours = Authority(tmp_path)
    async with listener(tmp_path, ours, ProxySettings(allowed_names=("front-proxy",))) as url:
        assert await seen(url, ours, ours.pair()) == ""
