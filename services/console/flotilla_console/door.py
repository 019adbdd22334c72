"""The door of the console: who sends a request, what they may see, the forms they send, and how they are answered."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from flotilla_console.access.identity import Identity
from flotilla_console.access.signin import SignIn, SignInNeeded
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page
from flotilla_console.sights import Sights
from flotilla_console.web.pages import Pages


class Entrance:
    """Signing in, as pages and the live stream use it."""

    def __init__(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in

    async def identify(self, request: Request) -> Identity | SignInNeeded:
        """Return who sends a request. Raises ApiError, Unreachable."""
        return await self._sign_in.identify(request)

    def has_session(self, request: Request) -> bool:
        """Report whether there is a session that the user can end; those of a proxy end there."""
        return self._sign_in.sessions.of(request) is not None

    def csrf_token(self, request: Request) -> str:
        """Return the token for the forms of the answer to a request."""
        token, request.state.csrf_cookie = self._sign_in.csrf.token(request, self._sign_in.user_of(request))
        return token

    def keep_token(self, request: Request, answer: Response) -> None:
        """Bind the browser to the token in this answer by a cookie."""
        self._sign_in.csrf.keep(answer, request.state.csrf_cookie)


class Door:
    """The checks of posted forms, and the answers to them."""

    def __init__(self, sign_in: SignIn, sights: Sights, pages: Pages) -> None:
        self._sign_in, self._sights, self._pages = sign_in, sights, pages

    async def user_of(self, request: Request) -> Identity | Response:
        """Return who sends the request, or the answer that sends them to sign in. Raises ApiError, Unreachable."""
        found = await self._sign_in.identify(request)
        return found if isinstance(found, Identity) else self._pages.sign_in_needed(request, found)

    async def form_of(self, request: Request, identity: Identity) -> Mapping[str, str]:
        """Return the fields of a form that this user has sent from a page of ours. Raises HTTPException."""
        del identity  # the form's token is bound to the session
        return await self._sign_in.form_of(request)

    async def sight_of(self, identity: Identity) -> Sight:
        """Return what the user may see. Raises ApiError, Unreachable."""
        return await self._sights.sight_of(identity)

    def show(self, request: Request, identity: Identity, page: Page, status: int) -> Response:
        """Answer with a page."""
        return self._pages.show(request, identity, page, status=status)

    def render(self, request: Request, page: Page, status: int) -> Response:
        """Answer with a page for a request that may have no identity."""
        return self._pages.show(request, None, page, status=status)

    def not_found(self, request: Request, identity: Identity) -> Response:
        """Answer that the page does not exist, or may not be seen."""
        return self._pages.not_found(request, identity)
