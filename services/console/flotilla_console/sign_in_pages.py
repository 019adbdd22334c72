"""The pages to sign in and out. They are made of blocks, work without scripts, and change nothing by GET."""

from collections.abc import Callable
from urllib.parse import quote

import structlog
from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from flotilla_console.access import guards
from flotilla_console.access.identity import Identity
from flotilla_console.access.oidc import FLOW_COOKIE, FLOW_SECONDS, Flow, OidcError
from flotilla_console.access.reviews import ReviewFailed
from flotilla_console.access.sessions import TooLarge
from flotilla_console.access.settings import Way
from flotilla_console.access.signin import SignIn
from flotilla_console.blocks.types import AnyBlock, Field, Form, Link, Notice, Paragraph, spans
from flotilla_console.page import Page

log = structlog.get_logger(__name__)

Render = Callable[[Request, Page, int], Response]
"""Renders a page with a status code for a request that may have no identity, with CSRF tokens in its forms."""

MOST_TOKEN = 16 * 1024
"""Longest token: above the largest header that apiservers accept there is nothing to review."""


URL_SIGNS = ":/%#?=@[]!$&'()*+,;"
"""Signs that stay as they are in the URL of a header."""


def router(signin: SignIn, render: Render) -> APIRouter:
    """Return the routes."""
    pages = _Pages(signin, render)
    routes = APIRouter(include_in_schema=False)
    routes.add_api_route("/signin", pages.sign_in, methods=["GET"])
    routes.add_api_route("/signin/token", pages.with_token, methods=["POST"])
    routes.add_api_route("/signin/oidc", pages.to_provider, methods=["POST"])
    routes.add_api_route("/signin/oidc/callback", pages.from_provider, methods=["GET"])
    routes.add_api_route("/signout", pages.sign_out, methods=["GET"])
    routes.add_api_route("/signout", pages.signed_out, methods=["POST"])
    return routes


class _Pages:
    def __init__(self, signin: SignIn, render: Render) -> None:
        self._signin = signin
        self._render = render

    async def sign_in(self, request: Request) -> Response:
        next_path = guards.local_path(request.query_params.get("next", "/"))
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A link on another site led here. Browsers do not send strict cookies with such a request; they do with
            # the one that follows from this page.
            return self._go_on(request, next_path, "Opening the page")
        if isinstance(await self._signin.identify(request), Identity) and "next" in request.query_params:
            return RedirectResponse(next_path, 303)
        return self._form(request, next_path)

    async def with_token(self, request: Request) -> Response:
        self._require("token")
        self._signin.attempts.count(request)
        form = await self._signin.form_of(request)
        next_path, token = guards.local_path(form.get("next", "/")), form.get("token", "").strip()
        problem = token_problem(token)
        if problem:
            return self._form(request, next_path, problem, 400)
        try:
            identity = await self._signin.tokens.identity(token)
        except ReviewFailed as error:
            return self._form(request, next_path, f"The apiserver does not say whose token it is: {error}", 503)
        if identity is None:
            return self._form(request, next_path, "The apiserver does not accept this token.", 401)
        return self._begin(request, RedirectResponse(next_path, 303), identity, "token", next_path)

    async def to_provider(self, request: Request) -> Response:
        self._require("oidc")
        self._signin.attempts.count(request)
        form = await self._signin.form_of(request)
        next_path = guards.local_path(form.get("next", "/"))
        assert self._signin.oidc is not None
        try:
            url, flow = await self._signin.oidc.begin(next_path)
        except OidcError as error:
            log.warning("sign-in with the OIDC provider does not begin", error=str(error))
            return self._form(request, next_path, str(error), 502)
        # No redirect: browsers apply the policy `form-action` to redirects of forms, too.
        response = self._go_on(request, url, "Opening the page of your organization")
        # Lax: the provider's redirect to the callback comes from another site.
        response.set_cookie(
            FLOW_COOKIE,
            self._signin.seal.close(flow),
            max_age=int(FLOW_SECONDS),
            path="/",
            secure=True,
            httponly=True,
            samesite="lax",
        )
        return response

    async def from_provider(self, request: Request) -> Response:
        self._require("oidc")
        self._signin.attempts.count(request)
        flow = self._signin.seal.open(request.cookies.get(FLOW_COOKIE, ""), Flow, FLOW_SECONDS)
        if flow is None:
            problem = "The sign-in took too long, or was begun in another browser. Sign in again."
            return self._without_flow(self._form(request, "/", problem, 400))
        assert self._signin.oidc is not None
        try:
            identity = await self._signin.oidc.complete(request.query_params, flow)
        except OidcError as error:
            log.warning("sign-in with the OIDC provider failed", error=str(error))
            return self._without_flow(self._form(request, flow.next, str(error), 401))
        next_path = guards.local_path(flow.next)
        response = self._go_on(request, next_path, "Signed in")
        return self._without_flow(self._begin(request, response, identity, "oidc", next_path))

    async def sign_out(self, request: Request) -> Response:
        form = Form("sign-out", "/signout", "post", (), "Sign out")
        text = "You will be signed out in all tabs of this browser."
        return self._render(request, Page("Sign out", (Paragraph(spans(text)), form)), 200)

    async def signed_out(self, request: Request) -> Response:
        await self._signin.form_of(request)
        if self._signin.sessions.of(request) is None:
            text = "There is no session to end. A proxy that signs you in has a sign-out of its own."
            return self._render(request, Page("Sign out", (Notice("idle", spans(text)),)), 200)
        page = Page("Signed out", (Notice("ok", spans("You are signed out. ", Link("Sign in again", "/signin"))),))
        response = self._render(request, page, 200)
        self._signin.sessions.end(request, response)
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def _begin(self, request: Request, response: Response, identity: Identity, way: Way, next_path: str) -> Response:
        """End the former session of this browser, and begin one."""
        self._signin.sessions.end(request, response)
        try:
            self._signin.sessions.begin(response, identity, way)
        except TooLarge as error:
            return self._form(request, next_path, f"This sign-in is not possible: {error}.", 400)
        log.info("signed in", user=identity.user, way=way)
        return response

    def _form(self, request: Request, next_path: str, problem: str = "", status: int = 200) -> Response:
        return self._render(request, sign_in_page(self._signin.settings.ways, next_path, problem), status)

    def _go_on(self, request: Request, url: str, title: str) -> Response:
        """Return a page of this site that leads on at once, also without scripts."""
        link = Link("Continue", url)
        response = self._render(request, Page(title, (Notice("ok", spans(f"{title}. ", link)),)), 200)
        response.headers["Refresh"] = f"0; url={quote(url, safe=URL_SIGNS)}"
        return response

    def _without_flow(self, response: Response) -> Response:
        response.delete_cookie(FLOW_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
        return response

    def _require(self, way: Way) -> None:
        if not self._signin.has(way):
            raise HTTPException(404, "This way to sign in is not configured.")


def token_problem(token: str) -> str:
    """Return the reason why this cannot be a bearer token; empty: it can be."""
    if not token:
        return "Paste a token."
    if len(token) > MOST_TOKEN:
        return f"The token has more than {MOST_TOKEN} letters."
    if not token.isascii() or not token.isprintable() or " " in token:
        return "A token consists of letters, digits and signs, without spaces."
    return ""


def sign_in_page(ways: tuple[Way, ...], next_path: str, problem: str = "") -> Page:
    """Return the page with a form for each way that has one."""
    where = Field("next", "", "hidden", next_path)
    blocks: list[AnyBlock] = [Notice("bad", spans(problem))] if problem else []
    if "oidc" in ways:
        blocks.append(Form("sign-in-oidc", "/signin/oidc", "post", (where,), "Sign in with your organization"))
    if "token" in ways:
        help_text = "For example from: kubectl create token NAME. It stays in an encrypted cookie of this browser."
        token = Field("token", "Bearer token", "textarea", required=True, help=help_text)
        blocks.append(Form("sign-in-token", "/signin/token", "post", (token, where), "Sign in with the token"))
    if not {"oidc", "token"}.intersection(ways):
        text = "Open the console through the proxy of your organization, which signs you in."
        blocks.append(Notice("idle", spans(text)))
    return Page("Sign in", tuple(blocks))
