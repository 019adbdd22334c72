"""Authenticates node agents to the bus by the ServiceAccount token of their pod (docs/adr/0007).

The kubelet projects a token into the agent's pod that is bound to that pod, and the apiserver writes into it the node
that the pod runs on. NATS sends its unknown clients here; the apiserver reviews the token (TokenReview) and names the
node; the answer holds that node's permissions and nothing else. So a stolen token opens one node's subjects, and
becomes invalid with its pod. Every client that reaches NATS can send tokens. So the number of concurrent reviews is
limited, and refusals are cached (`LoginCache`).
"""

import asyncio
import hashlib
from collections import OrderedDict
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgspec
import structlog

from flotilla_common.bus import callout
from flotilla_common.bus.callout import Question
from flotilla_common.bus.interface import Follow, Message
from flotilla_common.bus.permissions import is_node_name, node_permissions
from flotilla_common.bus.tokens import KeyPair
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.node.quota import Quota
from flotilla_common.service import Context

QUEUE = "watcher"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
NODE_CLAIM = "authentication.kubernetes.io/node-name"
"""Claim in which the apiserver (1.30 and newer) names the node of a token's pod."""

LASTING = timedelta(hours=1)
"""Validity of a login, the usual one of projected tokens. Then the agent presents its newer token."""

REVIEWS_AT_ONCE = 32
"""Limit of concurrent reviews: a thousand agents that reconnect together are all admitted within a second."""

NATS_TIMEOUT_SECONDS = 2.0
"""NATS's default timeout of an answer: a token that has waited for longer is not reviewed."""

V = TypeVar("V")

REFUSED_SECONDS = 30.0
"""Time for which a refusal is cached. Agents ask four times a second, and an invalid token seldom becomes valid."""

REFUSALS, REFUSALS_PER_SECOND = 60, 0.5
"""Rate of refused tokens of one address, beyond which its next ones are not reviewed."""

CACHED = 10_000
"""Limit of cached tokens, by their digests: two for each node of the largest clusters."""


class _User(msgspec.Struct):
    username: str = ""
    extra: dict[str, list[str]] = {}


class _ReviewStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)
    audiences: list[str] = []
    error: str = ""


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


class LoginDenied(Exception):
    """The client is refused; the text goes into our log and the server's."""


class TokenRefused(LoginDenied):
    """The apiserver's review refuses the token."""


class NodeLogins:
    """Answers NATS's authentication requests."""

    def __init__(self, *, api: Api, clock: Clock, issuer: KeyPair, account: str, audience: str) -> None:
        """Authenticate agents by their user name: `account` is `system:serviceaccount:<namespace>:<name>`."""
        self._api = api
        self._clock = clock
        self._issuer = issuer
        self._account = account
        self._audience = audience
        self._slots = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._cache = LoginCache()
        self._log = structlog.get_logger(part="node logins")

    async def answer(self, message: Message) -> bytes | None:
        """Return a signed answer, or None if the request is not from a NATS server."""
        try:
            question = callout.read_question(message.data)
        except (ValueError, msgspec.DecodeError) as error:
            self._log.warning("auth callout request without a valid server signature", error=str(error))
            return None
        now = self._clock.now()
        try:
            node = await self._node(question)
        except LoginDenied as error:
            self._log.warning("login refused", why=str(error))
            return callout.refuse(question, self._issuer, str(error), now)
        self._log.info("login", node=node)
        return callout.allow(
            question, self._issuer, name=f"node/{node}", permissions=node_permissions(node), now=now, lasting=LASTING
        )

    async def _node(self, question: Question) -> str:
        """Return the node that the token's pod runs on. Raises LoginDenied."""
        if not question.token:
            raise LoginDenied("no token was presented")
        asked = self._clock.monotonic()
        async with self._slots:
            now = self._clock.monotonic()
            if now - asked > NATS_TIMEOUT_SECONDS:
                raise LoginDenied("too many logins at a time")
            if why := self._cache.refusal(question.token, question.host, now):
                raise LoginDenied(why)
            try:
                node = await self._reviewed(question.token)
            except TokenRefused as error:
                self._cache.refused(question.token, question.host, now, str(error))
                raise
        self._cache.good(question.token)
        return node

    async def _reviewed(self, token: str) -> str:
        """Return the node from the apiserver's review. Raises TokenRefused, or LoginDenied without a review."""
        body = msgspec.json.encode(
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenReview",
                "spec": {"token": token, "audiences": [self._audience]},
            }
        )
        try:
            reply = await self._api.raw("POST", REVIEWS, body, {"Content-Type": "application/json"})
        except (ApiError, Unreachable) as error:
            raise LoginDenied(f"the apiserver does not review the token: {error}") from error
        status = msgspec.json.decode(reply, type=_Review).status
        if not status.authenticated or self._audience not in status.audiences:
            raise TokenRefused(f"the token is not valid here: {status.error or 'wrong audience'}")
        if status.user.username != self._account:
            raise TokenRefused(f"{status.user.username} is not the agents' account")
        nodes = status.user.extra.get(NODE_CLAIM, [])
        if len(nodes) != 1:
            raise TokenRefused("the token is not bound to a pod on a node")
        if not is_node_name(nodes[0]):
            raise TokenRefused(f"{nodes[0]!r} is not the name of a node")
        return nodes[0]


async def serve_node_logins(context: Context) -> list[Follow]:
    """Serve authentication requests on the bus, if there is a key to sign answers."""
    settings = context.settings
    if not settings.nats_issuer:
        return []
    logins = NodeLogins(
        api=context.api,
        clock=context.clock,
        issuer=_issuer(settings.nats_issuer),
        account=f"system:serviceaccount:{settings.namespace}:{settings.node_account}",
        audience=settings.nats_audience,
    )
    return [await context.bus.serve(callout.SUBJECT, QUEUE, logins.answer)]


def _issuer(file: str) -> KeyPair:
    return KeyPair(Path(file).read_text(encoding="ascii").strip())


class LoginCache:
    """A cache of one replica's logins, so that clients that reach NATS cannot overload the apiserver.

    A refused token is not reviewed again for a while, and from an address with many refusals only tokens are reviewed
    that were good before: a client that shares an address with agents cannot lock them out. Times are monotonic.
    """

    def __init__(self) -> None:
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()  # when, and why
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._refusals = Quota(REFUSALS, REFUSALS_PER_SECOND)

    def refusal(self, token: str, host: str, now: float) -> str:
        """Return why the token is refused without a review, or "" if it needs one."""
        digest = _digest(token)
        since, why = self._refused.get(digest, (now - REFUSED_SECONDS, ""))
        if now - since < REFUSED_SECONDS:
            return why
        if digest not in self._good and not self._refusals.left(host, now):
            return f"too many tokens from {host} were refused"
        return ""

    def refused(self, token: str, host: str, now: float, why: str) -> None:
        """Record that the apiserver has refused the token, or that it is not an agent's."""
        self._good.pop(_digest(token), None)
        self._refusals.take(host, now)
        _store(self._refused, _digest(token), (now, why))

    def good(self, token: str) -> None:
        """Record that the token was accepted."""
        _store(self._good, _digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _store(known: OrderedDict[bytes, V], digest: bytes, what: V) -> None:
    known[digest] = what
    known.move_to_end(digest)
    if len(known) > CACHED:
        known.popitem(last=False)
