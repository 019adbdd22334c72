"""Logins by a kubeconfig: plugins, identity providers, and their renewal."""

import asyncio
import base64
import json
import os
import ssl
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from flotilla_common.kube import config as configs
from flotilla_common.kube.config import ApiConfig, load_config, read_here
from flotilla_common.kube.credentials import REFUSAL_SECONDS, Access, ConfigError, Login
from tests.support.fake_clock import FakeClock

pytestmark = [  # what the library uses of aiohttp
    pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'auth' parameter is deprecated:DeprecationWarning"),
]


class Source(msgspec.Struct, frozen=True):
    kubeconfig: str
    context: str = ""


def written(path: Path, user: dict[str, Any], **cluster: Any) -> Source:
    """Write a kubeconfig with this user."""
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "http://one:8080", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(document))
    return Source(str(path))


async def load(path: Path, user: dict[str, Any], **cluster: Any) -> ApiConfig:
    return await load_config(written(path, user, **cluster), reader=read_here)


def plugin(path: Path, script: str, **more: object) -> dict[str, Any]:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    version = "client.authentication.k8s.io/v1"
    env = [{"name": "WHO", "value": "me"}]
    return {"exec": {"command": f"./{path.name}", "apiVersion": version, "env": env, **more}}


def answer(**status: str) -> str:
    found = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"echo x >> calls; cat <<END\n{json.dumps(found)}\nEND"


@pytest.mark.parametrize(
    ("expires", "calls"), [("2999-01-01T00:00:00Z", 1), ("2020-01-01T00:00:00Z", 2)], ids=["kept", "expired"]
)
async def test_an_exec_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expires: str, calls: int) -> None:
    monkeypatch.chdir(tmp_path)
    script = answer(token="$WHO", expirationTimestamp=expires)
    config = await load(tmp_path / "config", plugin(tmp_path / "auth", script) | {"token": "unused"})
    assert not (tmp_path / "calls").exists()  # reading the configuration runs nothing
    assert [await config.credential.authorization() for _ in range(2)] == ["Bearer me"] * 2
    assert len((tmp_path / "calls").read_text().split()) == calls
    config.credential.reject()
    await config.credential.authorization()
    assert len((tmp_path / "calls").read_text().split()) == calls + 1


async def test_a_plugin_is_told_of_the_cluster_if_it_wants_to_know(tmp_path: Path) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/told; {answer(token="t")}'
    for wanted in (False, True):
        user = plugin(tmp_path / "auth", f"cd {tmp_path}; {script}", provideClusterInfo=wanted)
        config = await load(tmp_path / "config", user, **{"tls-server-name": "kube"})
        await config.credential.authorization()
        cluster = json.loads((tmp_path / "told").read_text())["spec"].get("cluster")
        assert cluster == ({"server": "http://one:8080", "tls-server-name": "kube"} if wanted else None)


async def test_a_plugin_may_give_a_certificate_that_ends(
    tmp_path: Path, pki: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status = {"clientCertificateData": pki[0].decode(), "clientKeyData": pki[1].decode()}
    user = plugin(tmp_path / "auth", answer(**status, expirationTimestamp="2020-01-01T00:00:00Z"))
    config = await load(tmp_path / "config", user, server="https://one:8443")
    assert [await config.credential.authorization() for _ in range(2)] == ["", ""]
    assert len((tmp_path / "calls").read_text().split()) == 2
    user = plugin(tmp_path / "auth", answer(clientCertificateData="none", clientKeyData="none"))
    config = await load(tmp_path / "config", user, server="https://one:8443")
    with pytest.raises(ConfigError, match="client certificate and key do not load"):
        await config.credential.authorization()


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo no >&2; exit 3", r"config: users\[u\]\.exec: \./auth: process returned 3\. no"),
        ("echo hello", "failed to decode process output"),
        ('echo \'{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"","status":{}}\'', "does not match"),
        ('echo \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"}\'', "missing key 'status'"),
        (answer(), "neither a token"),
        (answer(token="t", expirationTimestamp="soon"), "Invalid RFC3339 encoded datetime"),
    ],
)
async def test_an_exec_plugin_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    config = await load(tmp_path / "config", plugin(tmp_path / "auth", script))
    with pytest.raises(ConfigError, match=complaint):
        await config.credential.authorization()


async def test_a_plugin_that_is_not_installed(tmp_path: Path) -> None:
    user = {"exec": {"command": "no-such-plugin", "apiVersion": "v1", "installHint": "Install it."}}
    config = await load(tmp_path / "config", user)
    with pytest.raises(ConfigError, match=r"cannot be started: No such file or directory\. Install it\."):
        await config.credential.authorization()


async def test_a_plugin_that_needs_a_terminal(tmp_path: Path) -> None:
    user = plugin(tmp_path / "auth", answer(token="t"), interactiveMode="Always")
    with pytest.raises(ConfigError, match=r"users\[u\]\.exec\.interactiveMode: is Always, but there is no terminal"):
        await load(tmp_path / "config", user)


def token(**claims: object) -> str:
    """Return an ID token whose claims need the alphabet of URLs."""
    body = base64.urlsafe_b64encode(json.dumps({"groups": "???>>>~~~", **claims}).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def ends(delta: timedelta) -> float:
    return (datetime.now(UTC) + delta).timestamp()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class Issuer:
    """An identity provider."""

    def __init__(self) -> None:
        self.answer: dict[str, str] = {}
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    async def configuration(self, _: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"{self.url}token"})

    async def token(self, request: web.Request) -> web.Response:
        self.asked.append({**await request.post(), "login": request.headers["Authorization"]})
        return web.json_response(self.answer, status=200 if self.answer else 400)

    def user(self, **more: str) -> dict[str, Any]:
        known = {"idp-issuer-url": self.url, "client-id": "me", "client-secret": "pw", "refresh-token": "r1"}
        return {"auth-provider": {"name": "oidc", "config": known | more}}


@pytest_asyncio.fixture
async def issuer(pki: tuple[bytes, bytes], tmp_path: Path) -> AsyncIterator[Issuer]:
    (tmp_path / "pem").write_bytes(pki[0] + pki[1])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "pem")
    made, app = Issuer(), web.Application()
    app.router.add_get("/.well-known/openid-configuration", made.configuration)
    app.router.add_post("/token", made.token)
    running = TestServer(app, scheme="https", host="127.0.0.1")
    await running.start_server(ssl=tls)
    made.url = str(running.make_url("/"))
    yield made
    await running.close()


async def test_an_id_token_is_used_while_it_holds(tmp_path: Path, issuer: Issuer) -> None:
    held = token(exp=ends(timedelta(minutes=5)))
    config = await load(tmp_path / "config", issuer.user(**{"id-token": held}))
    assert await config.credential.authorization() == f"Bearer {held}"
    assert issuer.asked == []


@pytest.mark.parametrize("rotates", [True, False], ids=["a new refresh token", "the old refresh token"])
async def test_an_id_token_that_ends_is_replaced_in_the_kubeconfig(
    tmp_path: Path, issuer: Issuer, pki: tuple[bytes, bytes], rotates: bool
) -> None:
    fresh = token(exp=ends(timedelta(hours=1)))
    issuer.answer = {"id_token": fresh, **({"refresh_token": "r2"} if rotates else {})}
    known = {
        "id-token": token(exp=ends(timedelta(seconds=20))),
        "idp-certificate-authority-data": base64.b64encode(pki[0]).decode(),
    }
    path = tmp_path / "config"
    config = await load(path, issuer.user(**known))
    assert issuer.asked == []
    assert [await config.credential.authorization() for _ in range(2)] == [f"Bearer {fresh}"] * 2
    basic = "Basic " + base64.b64encode(b"me:pw").decode()
    assert issuer.asked == [{"grant_type": "refresh_token", "refresh_token": "r1", "login": basic}]
    saved = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (saved["id-token"], saved["refresh-token"]) == (fresh, "r2" if rotates else "r1")
    assert saved["client-secret"] == "pw"
    assert names(tmp_path) == {"config", "pem"}


async def test_nobody_unknown_gets_the_refresh_token(tmp_path: Path, issuer: Issuer) -> None:
    config = await load(tmp_path / "config", issuer.user())
    with pytest.raises(
        ConfigError, match=r"auth-provider\.config\.idp-issuer-url: returned no ID token: .*CERTIFICATE"
    ):
        await config.credential.authorization()
    assert issuer.asked == []


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"id-token": "no-jwt"}, r"auth-provider\.config\.id-token: is not a JWT"),
        ({"refresh-token": ""}, r"auth-provider\.config\.refresh-token: is not set"),
        ({}, r"idp-issuer-url: returned no ID token: ClientResponseError: 400"),
    ],
)
async def test_a_provider_that_gives_nothing(
    tmp_path: Path, issuer: Issuer, pki: tuple[bytes, bytes], more: dict[str, str], complaint: str
) -> None:
    authority = {"idp-certificate-authority-data": base64.b64encode(pki[0]).decode()}
    with pytest.raises(ConfigError, match=complaint):
        await (await load(tmp_path / "config", issuer.user(**authority, **more))).credential.authorization()


class Door:
    """Logs in with a number that grows."""

    def __init__(self, **more: Any) -> None:
        self.count = 0
        self.more = more

    async def renew(self) -> Access:
        self.count += 1
        await asyncio.sleep(0)
        return Access(server="http://x", namespace="n", authorization=str(self.count), **self.more)


async def test_a_login_is_renewed_before_it_ends_by_one_request_of_many() -> None:
    clock = FakeClock()
    door = Door(expires=clock.now() + timedelta(seconds=100))
    login = Login(Access(server="http://x", namespace="n", deferred=True), None, door.renew, clock)
    assert await asyncio.gather(*(login.authorization() for _ in range(5))) == ["1"] * 5
    clock.time = 69
    assert await login.authorization() == "1"
    clock.time = 71
    door.more["expires"] = None
    assert await asyncio.gather(*(login.authorization() for _ in range(5))) == ["2"] * 5


async def test_who_is_not_welcome_does_not_ask_all_the_time() -> None:
    clock, door = FakeClock(), Door()
    clock.time = 100
    login = Login(Access(server="http://x", namespace="n", authorization="0"), None, door.renew, clock)
    assert await login.authorization() == "0"
    for _ in range(5):
        login.reject()
        assert await login.authorization() == "1"
    clock.time += REFUSAL_SECONDS
    login.reject()
    assert await login.authorization() == "2"


async def test_services_read_in_a_process_of_its_own(tmp_path: Path) -> None:
    source = written(tmp_path / "config", plugin(tmp_path / "auth", f"cd {tmp_path}; {answer(token='t')}"))
    config = await load_config(source)
    assert config.server == "http://one:8080"
    assert await config.credential.authorization() == "Bearer t"
    with pytest.raises(ConfigError, match=f"^kubeconfig {source.kubeconfig}: contexts: there is no 'y'$"):
        await load_config(Source(source.kubeconfig, "y"))


def ended(pid: int) -> bool:
    """Report whether the process is gone, or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


async def test_a_plugin_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pid")
    source = written(tmp_path / "config", plugin(tmp_path / "auth", f"echo $$ > {tmp_path}/pid; exec sleep 1000"))
    config = await load_config(source)
    asking = asyncio.create_task(config.credential.authorization())
    pid = int(await asyncio.to_thread((tmp_path / "pid").read_text))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ended(pid)
    monkeypatch.setattr(configs, "LOGIN_SECONDS", 0.01)
    with pytest.raises(ConfigError, match="no login within 0 s"):
        await config.credential.authorization()
