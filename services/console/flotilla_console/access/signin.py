"""Identifies the user of a request by the configured ways to sign in, in their order."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import httpx2
from starlette.requests import Request

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_console.access.ended import EndedSessions
from flotilla_console.access.guards import Attempts, Csrf, form_of, local_path, refuse_other_sites
from flotilla_console.access.identity import Identity, authenticated
from flotilla_console.access.oidc import Oidc
from flotilla_console.access.proxy import ProxyHeaders
from flotilla_console.access.reviews import ReviewFailed, TokenReviews
from flotilla_console.access.sealing import Seal, keys_of
from flotilla_console.access.sessions import Session, Sessions
from flotilla_console.access.settings import AccessSettings, Way

SIGN_IN = "/signin"


@dataclass(frozen=True)
class SignInNeeded:
    """The answer for a request without an identity; `href` leads to the page to do so, and from there back."""

    reason: str
    href: str


class SignIn:
    """Identifies requests, and has what the pages to sign in and out need."""

    def __init__(
        self,
        settings: AccessSettings,
        api: Api,
        clock: Clock,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Read the files that the settings name. Raises FileError."""
        seal = Seal(keys_of(settings.key_file), clock)
        self.settings = settings
        self.seal = seal
        self.ended = EndedSessions(clock, settings.session_seconds)
        self.sessions = Sessions(seal, clock, settings.session_seconds, self.ended)
        self.csrf = Csrf(seal)
        self.attempts = Attempts(clock, settings.attempts_per_minute)
        self.tokens = TokenReviews(api, clock, grace=settings.rights_grace_seconds)
        self.oidc = Oidc(settings.oidc, clock, transport=transport) if self.has("oidc") else None
        self._proxy = ProxyHeaders(settings.proxy) if self.has("proxy") else None

    def has(self, way: Way) -> bool:
        """Report whether this way to sign in is configured."""
        return way in self.settings.ways

    async def identify(self, request: Request) -> Identity | SignInNeeded:
        """Return who makes the request. A live stream asks again from time to time: its session may have ended."""
        session, reason = self.sessions.of(request), ""
        for way in self.settings.ways:
            match way:
                case "proxy":
                    found = self._of_proxy(request)
                case "fixed":
                    found = authenticated(self.settings.fixed.user, self.settings.fixed.groups, read_only=True)
                case "oidc" | "token" | "key":
                    found = await self._of_session(session) if session and session.way == way else None
            if isinstance(found, Identity):
                return found
            reason = reason or found or ""
        return SignInNeeded(reason or "Sign in to see this page.", self.href(request))

    def href(self, request: Request) -> str:
        """Return the path of the page to sign in, from which it goes on to the page of this request."""
        query = f"?{request.url.query}" if request.url.query else ""
        next_path = local_path(request.url.path + query) if request.method == "GET" else "/"
        return SIGN_IN if next_path == "/" else f"{SIGN_IN}?{urlencode({'next': next_path})}"

    def user_of(self, request: Request) -> str:
        """Return to whom forms of this request belong, before it is known whether they may do anything."""
        session = self.sessions.of(request)
        return session.id if session else ""

    async def form_of(self, request: Request) -> Mapping[str, str]:
        """Return the fields of a form that this console has made for this browser and user. Raises HTTPException."""
        refuse_other_sites(request, self.settings.origin)
        form = await form_of(request)
        self.csrf.check(request, form, self.user_of(request))
        return form

    def _of_proxy(self, request: Request) -> Identity | str | None:
        if self._proxy is None or self._proxy.refused(request):
            return "The headers of the proxy are not trusted: its secret or certificate is missing."
        return self._proxy.identity(request)

    async def _of_session(self, session: Session) -> Identity | str:
        """Return the identity of a session; of a token's only while the apiserver accepts the token."""
        if not session.token:
            return session.identity()
        try:
            found = await self.tokens.identity(session.token)
        except ReviewFailed as error:
            return f"The apiserver does not say whose token it is: {error}"
        return found or "The apiserver does not accept the token any more. Sign in again."
