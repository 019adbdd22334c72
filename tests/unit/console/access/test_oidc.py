"""Signing in with an OpenID Connect provider: the whole flow, and every answer that must be refused."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from joserfc.jwk import OctKey, RSAKey

from flotilla_console.access.oidc import FLOW_COOKIE
from flotilla_console.access.settings import AccessSettings, OidcSettings
from tests.support.fake_clock import FakeClock
from tests.support.openid import CLIENT
from tests.unit.console.access.fakes import ISSUER, ORIGIN, Console, FakeProvider, ReviewApi, texts


class Scene:
    """A console with a provider."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        self.provider = FakeProvider(self.clock)
        oidc = {"issuer": ISSUER, "client_id": CLIENT, "redirect_url": f"{ORIGIN}/signin/oidc/callback"}
        access = AccessSettings(ways=("oidc",), oidc=OidcSettings(**(oidc | settings)), attempts_per_minute=100)
        self.console = Console(access, ReviewApi(), self.clock, self.provider)

    async def begin(self, next_path: str = "/nodes") -> dict[str, str]:
        """Sign in at the provider, and return the query of the callback."""
        response = await self.console.post("/signin/oidc", {"next": next_path})
        assert response.status_code == 200, response.text
        return self.provider.authorize(response.headers["refresh"].removeprefix("0; url="))

    async def answer(self, query: dict[str, str]) -> httpx2.Response:
        return await self.console.get(f"/signin/oidc/callback?{urlencode(query)}", sec_fetch_site="cross-site")

    async def sign_in(self) -> httpx2.Response:
        return await self.answer(await self.begin())


async def test_the_whole_flow():
    scene = Scene()
    scene.provider.claims = {"groups": ["dev"]}
    response = await scene.sign_in()
    assert response.status_code == 200
    assert response.headers["refresh"] == "0; url=/nodes"
    answer = (await scene.console.get("/whoami")).json()
    assert answer == {"user": f"{ISSUER}#jane", "groups": ["dev", "system:authenticated"], "extra": {}}
    assert FLOW_COOKIE not in scene.console.browser.cookies


async def test_a_confidential_client_sends_its_secret(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text("the-client-secret\n")
    scene = Scene(client_secret_file=str(file))
    assert (await scene.sign_in()).status_code == 200


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": [CLIENT, "another"]}, "azp"),
        ({"aud": None}, "aud"),
        ({"iss": "https://evil.example"}, "iss"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"iat": 4_000_000_000}, "issued in the future"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "no claim sub"),
        ({"sub": ["jane"]}, ""),
        ({"groups": "system:masters"}, "reserves"),
        ({"groups": [1]}, "not a list of texts"),
        ({"groups": {"a": 1}}, "not a list of texts"),
    ],
)
async def test_id_tokens_that_are_refused(claims: dict[str, object], words: str):
    scene = Scene()
    scene.provider.claims = claims
    response = await scene.sign_in()
    assert response.status_code == 401
    assert words in texts(response)
    assert await scene.console.user() == ""


@pytest.mark.parametrize(
    ("settings", "claims", "user", "groups"),
    [
        ({}, {}, f"{ISSUER}#jane", []),
        ({"username_prefix": "-"}, {}, "jane", []),
        ({"username_prefix": "acme:"}, {}, "acme:jane", []),
        ({"username_claim": "email"}, {"email": "j@x.y"}, "j@x.y", []),
        (
            {"groups_prefix": "acme:"},
            {"groups": ["a", "system:masters"]},
            f"{ISSUER}#jane",
            ["acme:a", "acme:system:masters"],
        ),
        ({"groups_claim": "roles"}, {"roles": "one", "groups": ["x"]}, f"{ISSUER}#jane", ["one"]),
    ],
)
async def test_claims_and_prefixes(settings: dict[str, Any], claims: dict[str, object], user: str, groups: list[str]):
    scene = Scene(**settings)
    scene.provider.claims = claims
    await scene.sign_in()
    answer = (await scene.console.get("/whoami")).json()
    assert (answer["user"], answer["groups"]) == (user, [*groups, "system:authenticated"])


async def test_an_email_address_that_is_not_verified_is_nobody():
    scene = Scene(username_claim="email")
    scene.provider.claims = {"email": "admin@x.y", "email_verified": False}
    assert "not verified" in texts(await scene.sign_in())


async def test_a_reserved_user_is_refused():
    scene = Scene(username_prefix="-")
    scene.provider.claims = {"sub": "system:admin"}
    assert "reserves" in texts(await scene.sign_in())


async def test_another_state_is_refused():
    scene = Scene()
    query = await scene.begin()
    for state in ("another", "", "ü"):
        response = await scene.answer(query | {"state": state})
        assert response.status_code in (400, 401)
    assert scene.provider.exchanges == 0


async def test_a_callback_cannot_be_replayed():
    scene = Scene()
    query = await scene.begin()
    cookie = scene.console.browser.cookies[FLOW_COOKIE]
    assert (await scene.answer(query)).status_code == 200
    scene.console.browser.cookies.set(FLOW_COOKIE, cookie, domain="console.example")
    response = await scene.answer(query)
    assert response.status_code == 401
    assert "completed before" in texts(response)
    assert scene.provider.exchanges == 1


async def test_a_callback_in_another_browser_is_refused():
    scene = Scene()
    query = await scene.begin()
    scene.console.browser = scene.console.new_browser()
    assert "another browser" in texts(await scene.answer(query))


async def test_a_flow_ends_after_ten_minutes():
    scene = Scene()
    query = await scene.begin()
    scene.clock.time = 601
    assert "too long" in texts(await scene.answer(query))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"error": "access_denied", "error_description": "not you"}, "access_denied not you"),
        ({"iss": "https://evil.example"}, "another provider"),
        ({"code": ""}, "no code"),
    ],
)
async def test_answers_that_are_refused(change: dict[str, str], words: str):
    scene = Scene()
    response = await scene.answer(await scene.begin() | change)
    assert response.status_code == 401
    assert words in texts(response)
    assert scene.provider.exchanges == 0


async def test_a_code_that_the_provider_does_not_accept():
    scene = Scene()
    await scene.sign_in()
    response = await scene.sign_in()
    assert response.status_code == 401
    assert "invalid_grant" in texts(response)


async def test_a_signature_by_another_key_is_refused():
    scene = Scene()
    scene.provider.signing = RSAKey.generate_key(2048, {"kid": "one"})
    assert "not valid" in texts(await scene.sign_in())


async def test_symmetric_algorithms_are_refused_though_the_provider_offers_them():
    scene = Scene()
    scene.provider.algorithm, scene.provider.signing = "HS256", OctKey.generate_key(256)  # type: ignore[assignment]
    assert "not valid" in texts(await scene.sign_in())


async def test_documents_are_cached_and_rotated_keys_are_read_again():
    scene = Scene()
    await scene.sign_in()
    documents = [path for path in scene.provider.reads if path != "/realm/token"]
    assert documents == ["/realm/.well-known/openid-configuration", "/realm/keys"]
    scene.provider.rotate()
    scene.provider.forget_codes()
    scene.clock.time = 31
    assert (await scene.sign_in()).status_code == 200
    assert scene.provider.reads.count("/realm/keys") == 2
    assert scene.provider.reads.count("/realm/.well-known/openid-configuration") == 1


async def test_a_provider_that_is_down_or_another_one_is_named():
    scene = Scene()
    scene.provider.down = True
    response = await scene.console.post("/signin/oidc")
    assert response.status_code == 502
    assert "openid-configuration: connection refused" in texts(response)
    scene.provider.down, scene.provider.issuer = False, "https://id.example/other"
    assert "is of the issuer https://id.example/other" in texts(await scene.console.post("/signin/oidc"))
