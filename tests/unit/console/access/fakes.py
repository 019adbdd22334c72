"""An apiserver that reviews, an OpenID Connect provider, and the console's pages to sign in, all in this process."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx2
import msgspec
from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from flotilla_console.access.guards import CSRF_FIELD
from flotilla_console.access.identity import Identity
from flotilla_console.access.settings import AccessSettings
from flotilla_console.access.signin import SignIn
from flotilla_console.page import Page
from flotilla_console.sign_in_pages import router
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

ORIGIN = "https://console.example"
ISSUER = "https://id.example/realm"
CLIENT = "flotilla"


class ReviewApi(FakeApi):
    """Grants what `granted` accepts, and accepts the tokens of `users`."""

    def __init__(self, granted: Callable[[Json], bool] = lambda _: False) -> None:
        super().__init__()
        self.granted = granted
        self.users: dict[str, Json] = {}
        self.failure: Exception | None = None
        self.reviews: list[Json] = []
        self.requests: list[tuple[str, str, bytes, Mapping[str, str]]] = []

    async def raw(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *_: object, **__: Any
    ) -> bytes:
        self.requests.append((method, path, body, headers or {}))
        if self.failure:
            raise self.failure
        if path.endswith("/subjectaccessreviews"):
            spec = msgspec.json.decode(body)["spec"]
            self.reviews.append(spec)
            return msgspec.json.encode({"status": {"allowed": self.granted(spec)}})
        if path.endswith("/tokenreviews"):
            user = self.users.get(msgspec.json.decode(body)["spec"]["token"])
            status = {"authenticated": True, "user": user} if user else {"authenticated": False, "error": "no"}
            return msgspec.json.encode({"status": status})
        return b"{}"


class Provider:
    """An OpenID Connect provider. Tests change the `claims` and other members of the next sign-in."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.signing = self.key
        self.algorithm = "RS256"
        self.issuer = ISSUER
        self.claims: dict[str, object] = {}
        self.reads: list[str] = []
        self.exchanges = 0
        self.down = False
        self._challenge = ""
        self._nonce = ""
        self._used: set[str] = set()
        routes = [
            Route("/realm/.well-known/openid-configuration", self._discovery),
            Route("/realm/keys", self._keys),
            Route("/realm/token", self._token, methods=["POST"]),
        ]
        self._app = httpx2.ASGITransport(Starlette(routes=routes))
        self.transport = httpx2.MockTransport(self._handle)

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.reads.append(request.url.path)
        if self.down:
            raise httpx2.ConnectError("connection refused")
        response = await self._app.handle_async_request(request)
        return httpx2.Response(response.status_code, headers=response.headers, content=await response.aread())

    def authorize(self, url: str) -> dict[str, str]:
        """Sign in at the provider's page, and return the query of the callback."""
        query = dict(parse_qsl(urlsplit(url).query))
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        self._challenge, self._nonce = query["code_challenge"], query["nonce"]
        return {"state": query["state"], "code": "the-code"}

    def rotate(self) -> None:
        """Sign with a new key from now on."""
        self.key = self.signing = RSAKey.generate_key(2048, {"kid": "two"})

    async def _discovery(self, _request: Request) -> Response:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        endpoints = {name: f"{ISSUER}/{path}" for name, path in paths.items()}
        return JSONResponse(
            {**endpoints, "issuer": self.issuer, "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]}
        )

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        verifier = form.get("code_verifier", "").encode()
        challenge = urlsafe_b64encode(sha256(verifier).digest()).decode().rstrip("=")
        if challenge != self._challenge or form["code"] in self._used:
            return JSONResponse({"error": "invalid_grant", "error_description": "code used or wrong"}, 400)
        self._used.add(form["code"])
        self.exchanges += 1
        now = int(self.clock.now().timestamp())
        usual = {"iss": ISSUER, "aud": CLIENT, "sub": "jane", "nonce": self._nonce, "iat": now, "exp": now + 300}
        claims = {name: value for name, value in (usual | self.claims).items() if value is not None}
        header = {"alg": self.algorithm, "kid": "two" if self.signing.kid == "two" else "one"}
        token = jwt.encode(header, claims, self.signing, algorithms=[self.algorithm])
        return JSONResponse({"id_token": token, "access_token": "opaque", "token_type": "Bearer"})


class Console:
    """A browser at the console's pages. Pages are rendered as JSON, with the CSRF token beside them."""

    def __init__(self, settings: AccessSettings, api: ReviewApi, clock: FakeClock, provider: Provider | None = None):
        self.api = api
        self.signin = SignIn(settings, api.api, clock, transport=provider.transport if provider else None)
        app = FastAPI()
        app.include_router(router(self.signin, self._render))
        app.add_api_route("/whoami", self._whoami)
        self.app = app
        self.browser = self.new_browser()

    def new_browser(self) -> httpx2.AsyncClient:
        """Return another browser."""
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=ORIGIN)

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.browser.get(path, headers=sent)

    async def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> httpx2.Response:
        """Post a form as a browser does that has loaded the page with it."""
        token = (await self.get("/signin")).json()["csrf"]
        return await self.send(path, {CSRF_FIELD: token, **(fields or {})}, **headers)

    async def send(self, path: str, fields: Mapping[str, str], **headers: str) -> httpx2.Response:
        sent = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
        sent |= {name.replace("_", "-").title(): value for name, value in headers.items()}
        return await self.browser.post(path, data=dict(fields), headers={k: v for k, v in sent.items() if v})

    async def user(self, browser: httpx2.AsyncClient | None = None, **headers: str) -> str:
        """Return who the console takes this browser for; empty: nobody."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await (browser or self.browser).get("/whoami", headers=sent)).json()["user"]

    def _render(self, request: Request, page: Page, status: int) -> Response:
        token, cookie = self.signin.csrf.token(request, self.signin.user_of(request))
        response = JSONResponse({"page": msgspec.to_builtins(page), "csrf": token}, status)
        self.signin.csrf.keep(response, cookie)
        return response

    async def _whoami(self, request: Request) -> Response:
        found = await self.signin.identify(request)
        if isinstance(found, Identity):
            return JSONResponse({"user": found.user, "groups": found.groups, "extra": dict(found.extra)})
        return JSONResponse({"user": "", "reason": found.reason, "href": found.href})


def texts(response: httpx2.Response) -> str:
    """Return all texts of the page."""
    return " ".join(re.findall(r'"text": ?"([^"]*)"', response.text))
