"""The other packages as the web server and the live stream use them."""

from typing import Protocol, runtime_checkable

from starlette.requests import Request
from starlette.responses import Response

from flotilla_console.access.identity import Identity
from flotilla_console.model.sight import Sight


@runtime_checkable
class SignInNeeded(Protocol):
    """The answer to a request that shows no identity."""

    @property
    def reason(self) -> str:
        """Return a sentence for the user."""
        ...

    @property
    def href(self) -> str:
        """Return the page where they can sign in; empty if there is no such page."""
        ...


class SignIn(Protocol):
    """The configured ways to sign in."""

    async def identify(self, request: Request) -> Identity | SignInNeeded:
        """Return who sends a request. Raises ApiError, Unreachable."""
        ...

    def has_session(self, request: Request) -> bool:
        """Report whether there is a session that the user can end."""
        ...

    def csrf_token(self, request: Request) -> str:
        """Return the token for the forms of the answer to a request."""
        ...

    def keep_token(self, request: Request, answer: Response) -> None:
        """Bind the browser to the token in this answer."""
        ...


class Sights(Protocol):
    """The sights of identities."""

    async def sight_of(self, identity: Identity) -> Sight:
        """Return what an identity may see now: the same object for all who may see the same."""
        ...
