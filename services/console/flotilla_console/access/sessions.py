"""Sessions: an encrypted cookie is all there is of one, except when it was ended (see `ended`).

Replacing the key ends all sessions.
"""

import secrets
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flotilla_common.clock import Clock
from flotilla_console.access.ended import EndedSessions
from flotilla_console.access.identity import Identity
from flotilla_console.access.sealing import Seal
from flotilla_console.access.settings import Way

COOKIE = "__Host-flotilla-session"
"""The prefix makes browsers accept it from this host over TLS only, for all paths."""

OWN: Way = "key"
"""The way to sign in whose sessions are those of the program's own user."""

MOST_BYTES = 4000
"""Largest cookie that all browsers keep (4096 bytes with its name and attributes)."""


class TooLarge(Exception):
    """An identity that is too large for a cookie."""


class Session(msgspec.Struct, frozen=True, tag="session", omit_defaults=True):
    """The content of the cookie."""

    id: str
    way: str
    expires: float
    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}
    token: str = ""

    def __repr__(self) -> str:
        """Return a text without the token and the id, so that no log can have them."""
        return f"Session(user={self.user!r}, way={self.way!r})"

    def identity(self) -> Identity:
        """Return who signed in."""
        return Identity(
            user=self.user, groups=self.groups, uid=self.uid, extra=self.extra, token=self.token, own=self.way == OWN
        )


class Sessions:
    """Begins, reads and ends sessions."""

    def __init__(self, seal: Seal, clock: Clock, seconds: float, ended: EndedSessions) -> None:
        self._seal = seal
        self._clock = clock
        self._seconds = seconds
        self._ended = ended

    def begin(self, response: Response, identity: Identity, way: str, expires: float | None = None) -> None:
        """Set the cookie of a new session, which ends at `expires` at the latest. Raises TooLarge."""
        now = self._clock.now().timestamp()
        end = min(now + self._seconds, expires or now + self._seconds)
        session = Session(
            id=secrets.token_urlsafe(16),
            way=way,
            expires=end,
            user=identity.user,
            groups=identity.groups,
            uid=identity.uid,
            extra=identity.extra,
            token=identity.token,
        )
        value = self._seal.close(session)
        if len(value) > MOST_BYTES:
            raise TooLarge(f"the session needs {len(value)} bytes, and a cookie holds {MOST_BYTES}")
        response.set_cookie(
            COOKIE, value, max_age=int(end - now), path="/", secure=True, httponly=True, samesite="strict"
        )

    def of(self, request: Request) -> Session | None:
        """Return the session of the request, unless it has expired or was ended."""
        text = request.cookies.get(COOKIE, "")
        session = self._seal.open(text, Session, self._seconds) if text else None
        if session is None or session.expires <= self._clock.now().timestamp() or self._ended.has(session.id):
            return None
        return session

    def end(self, request: Request, response: Response) -> None:
        """End the session of the request, for all copies of its cookie."""
        session = self.of(request)
        if session is not None:
            self._ended.end(session.id)
        response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
