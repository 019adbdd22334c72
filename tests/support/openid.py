"""An OpenID Connect provider with one client, as an ASGI application: in the test's process, or on a port of its own.

async with provider_at(port, authority, SystemClock()) as provider:
    provider.claims = {"groups": ["developers"]}
"""

from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from html import escape
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from fastapi import FastAPI
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from flotilla_cli.local import HOST
from flotilla_common.clock import Clock
from flotilla_common.health import bind
from flotilla_console.web.serving import serving
from tests.support.certificates import Authority

CLIENT = "flotilla"
CODE = "the-code"


class Provider:
    """Sign in all who name themselves. Tests change the `claims` and other members of the next sign-in."""

    def __init__(self, issuer: str, clock: Clock) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.signing = self.key
        self.algorithm = "RS256"
        self.issuer = issuer
        self.claims: dict[str, object] = {}
        self.exchanges = 0
        self._url, self._clock = issuer, clock
        self._user = self._challenge = self._nonce = ""
        self._used: set[str] = set()

    def application(self) -> FastAPI:
        """Return the provider's endpoints, below the path of the issuer."""
        path = urlsplit(self._url).path
        return FastAPI(
            openapi_url=None,
            routes=[
                Route(f"{path}/.well-known/openid-configuration", self._discovery),
                Route(f"{path}/keys", self._keys),
                Route(f"{path}/authorize", self._page),
                Route(f"{path}/authorize", self._signed_in, methods=["POST"]),
                Route(f"{path}/token", self._token, methods=["POST"]),
            ],
        )

    def begin(self, query: Mapping[str, str], user: str) -> dict[str, str]:
        """Sign the user in, and return the query of the callback."""
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert query["client_id"] == CLIENT
        assert "openid" in query["scope"].split()
        self._user, self._challenge, self._nonce = user, query["code_challenge"], query["nonce"]
        return {"state": query["state"], "code": CODE}

    def rotate(self) -> None:
        """Sign with a new key from now on."""
        self.key = self.signing = RSAKey.generate_key(2048, {"kid": "two"})

    def forget_codes(self) -> None:
        """Accept the code of the next sign-in, which is that of the former ones."""
        self._used.clear()

    async def _discovery(self, _request: Request) -> Response:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        endpoints = {name: f"{self._url}/{path}" for name, path in paths.items()}
        return JSONResponse(
            {**endpoints, "issuer": self.issuer, "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]}
        )

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def _page(self, request: Request) -> Response:
        form = '<form method="post"><label>User <input name="user"></label><button>Sign in</button></form>'
        return HTMLResponse(f"<title>Provider</title><h1>{escape(request.query_params['client_id'])}</h1>{form}")

    async def _signed_in(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        query = self.begin(request.query_params, form.get("user", ""))
        if not form.get("user"):
            query = {"state": query["state"], "error": "access_denied", "error_description": "nobody signed in"}
        return RedirectResponse(f"{request.query_params['redirect_uri']}?{urlencode(query)}", 303)

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        verifier = form.get("code_verifier", "").encode()
        challenge = urlsafe_b64encode(sha256(verifier).digest()).decode().rstrip("=")
        if challenge != self._challenge or form["code"] in self._used:
            return JSONResponse({"error": "invalid_grant", "error_description": "code used or wrong"}, 400)
        self._used.add(form["code"])
        self.exchanges += 1
        now = int(self._clock.now().timestamp())
        usual = {"iss": self._url, "aud": CLIENT, "sub": self._user, "nonce": self._nonce, "iat": now, "exp": now + 300}
        claims = {name: value for name, value in (usual | self.claims).items() if value is not None}
        header = {"alg": self.algorithm, "kid": "two" if self.signing.kid == "two" else "one"}
        token = jwt.encode(header, claims, self.signing, algorithms=[self.algorithm])
        return JSONResponse({"id_token": token, "access_token": "opaque", "token_type": "Bearer"})


@asynccontextmanager
async def provider_at(port: int, authority: Authority, clock: Clock) -> AsyncGenerator[Provider]:
    """Serve a provider over TLS on this port, with a certificate of the authority."""
    made = Provider(f"https://{HOST}:{port}/realm", clock)
    async with serving(made.application(), bind(port, "OpenID Connect", HOST), authority.server_context()):
        yield made
