"""TokenReviews: whose token it is, as the apiserver says."""

import asyncio
import hashlib
from collections.abc import Mapping

import msgspec

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_console.access.expiring import Expiring
from flotilla_console.access.identity import Identity

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
JSON = {"Content-Type": "application/json"}

REVIEW_SECONDS = 5.0
"""Timeout of a review."""

MOST_TOKENS = 10_000


class ReviewFailed(Exception):
    """A review without an answer."""


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: Mapping[str, tuple[str, ...]] | None = None


class _Status(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _Review(msgspec.Struct):
    status: _Status


_decode = msgspec.json.Decoder(_Review).decode


class TokenReviews:
    """Asks whose a token is, and keeps the answers for some time. Keys of the cache are digests, not tokens."""

    def __init__(self, api: Api, clock: Clock, *, seconds: float = 60.0, grace: float = 60.0) -> None:
        self._api = api
        self._clock = clock
        self._seconds = seconds
        self._grace = max(grace, seconds)
        self._known: Expiring[bytes, Identity] = Expiring(MOST_TOKENS)

    async def identity(self, token: str) -> Identity | None:
        """Return whose token it is, or None if the apiserver does not accept it. Raises ReviewFailed."""
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        known = self._known.get(digest, self._clock.monotonic(), self._seconds)
        if known is not None:
            return known
        try:
            found = await self._review(token)
        except ReviewFailed:
            recent = self._known.get(digest, self._clock.monotonic(), self._grace)
            if recent is None:
                raise
            return recent
        if found is None:
            self._known.remove(digest)
        else:
            self._known.put(digest, found, self._clock.monotonic())
        return found

    async def _review(self, token: str) -> Identity | None:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        try:
            async with asyncio.timeout(REVIEW_SECONDS):
                answer = await self._api.raw("POST", PATH, msgspec.json.encode(request), JSON)
            status = _decode(answer).status
        except TimeoutError as error:
            raise ReviewFailed(f"no answer within {REVIEW_SECONDS:.0f} s") from error
        except (ApiError, Unreachable, msgspec.MsgspecError) as error:
            raise ReviewFailed(str(error)) from error
        user = status.user
        if not status.authenticated or not user.username:
            return None
        groups, extra = user.groups or (), user.extra or {}
        return Identity(user=user.username, groups=groups, uid=user.uid, extra=extra, token=token)
