"""An apiserver that reviews, an OpenID Connect provider, and the console's pages to sign in, all in this process."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import msgspec
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from flotilla_console.access.guards import CSRF_FIELD
from flotilla_console.access.identity import Identity
from flotilla_console.access.settings import AccessSettings
from flotilla_console.access.signin import SignIn
from flotilla_console.page import Page
from flotilla_console.sign_in_pages import router
from tests.support.fake_clock import FakeClock
from tests.support.openid import Provider
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

ORIGIN = "https://console.example"
ISSUER = "https://id.example/realm"


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


class FakeProvider(Provider):
    """A provider that is reached without a connection. Tests read `reads`, and set `down`."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(ISSUER, clock)
        self.reads: list[str] = []
        self.down = False
        self._app = httpx2.ASGITransport(self.application())
        self.transport = httpx2.MockTransport(self._handle)

    def authorize(self, url: str) -> dict[str, str]:
        """Sign in at the provider's page, and return the query of the callback."""
        return self.begin(dict(parse_qsl(urlsplit(url).query)), "jane")

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        self.reads.append(request.url.path)
        if self.down:
            raise httpx2.ConnectError("connection refused")
        response = await self._app.handle_async_request(request)
        return httpx2.Response(response.status_code, headers=response.headers, content=await response.aread())


class Console:
    """A browser at the console's pages. Pages are rendered as JSON, with the CSRF token beside them."""

    def __init__(
        self, settings: AccessSettings, api: ReviewApi, clock: FakeClock, provider: FakeProvider | None = None
    ) -> None:
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
