"""Sign-in with the one-time key of a local console (`flotilla console`, `flotilla up`).

Only the user of the program can read the file of the key. The printed URL has the
key, and the first browser that opens it gets a session. The file is removed then, so that the URL, which remains in
histories and process lists, is worth nothing. Everything is done with the program's own credentials.
"""

import secrets
from pathlib import Path
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from flotilla_common.kube.interface import Api
from flotilla_console.access.identity import Identity
from flotilla_console.access.sessions import OWN

PATH = "/signin/key"

_REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REFUSED = "This key was used already, or is of another start of the console. Its command prints a new one.\n"


class Begins(Protocol):
    """The part of sessions that begins one."""

    def begin(self, response: Response, identity: Identity, way: str) -> None:
        """Set the cookie of a new session."""
        ...


class _User(msgspec.Struct):
    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


class _Status(msgspec.Struct, rename="camel"):
    user_info: _User


class _Review(msgspec.Struct):
    status: _Status


async def own_identity(api: Api) -> Identity:
    """Return who we are to the apiserver. Raises ApiError, Unreachable."""
    answer = await api.raw("POST", _REVIEWS, _REVIEW, headers={"Content-Type": "application/json"})
    user = msgspec.json.decode(answer, type=_Review).status.user_info
    return Identity(user=user.username, groups=user.groups, uid=user.uid, extra=user.extra, own=True)


class LocalKey:
    """A key in a file, which exists until the key is used."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def use(self, given: str) -> bool:
        """Report whether this is the key, which is used up then."""
        try:
            key = self._file.read_bytes().strip()
        except FileNotFoundError:
            return False
        if not key or not secrets.compare_digest(given.encode(), key):
            return False
        self._file.unlink(missing_ok=True)
        return True


def route(key: LocalKey, sessions: Begins, identity: Identity) -> Route:
    """Return the route that begins a session for the owner of the key."""

    async def sign_in(request: Request) -> Response:
        if not key.use(request.query_params.get("key", "")):
            return PlainTextResponse(_REFUSED, status_code=403)
        response = RedirectResponse("/", status_code=303)
        sessions.begin(response, identity, OWN)
        return response

    return Route(PATH, sign_in, methods=["GET"])
