"""What is remembered of logins, so that whoever can reach NATS cannot keep the apiserver busy.

A token that was refused is not judged again for a while, and an address from which many were refused has no more
judged, but for tokens that were good before: where agents share an address with somebody else, he cannot lock them out.
"""

import hashlib
from collections import OrderedDict
from typing import TypeVar

from flotilla_common.node.quota import Quota

V = TypeVar("V")

REFUSED_SECONDS = 30.0
"""How long a refusal is remembered. Agents ask four times a second, and a token that is not valid seldom becomes so."""

REFUSALS, REFUSALS_PER_SECOND = 60, 0.5
"""Refused tokens of one address, until its next ones are not judged."""

REMEMBERED = 10_000
"""Tokens that are remembered, by their digests: two for each node of the largest clusters."""


class LoginMemory:
    """Of one replica. Times are monotonic."""

    def __init__(self) -> None:
        self._refused: OrderedDict[bytes, tuple[float, str]] = OrderedDict()  # when, and why
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._refusals = Quota(REFUSALS, REFUSALS_PER_SECOND)

    def objection(self, token: str, host: str, now: float) -> str:
        """Why the token need not be judged; empty when it has to be."""
        digest = _digest(token)
        since, why = self._refused.get(digest, (now - REFUSED_SECONDS, ""))
        if now - since < REFUSED_SECONDS:
            return why
        if digest not in self._good and not self._refusals.left(host, now):
            return f"too many tokens from {host} were refused"
        return ""

    def refused(self, token: str, host: str, now: float, why: str) -> None:
        """The apiserver has refused it, or what it says does not make it an agent's."""
        self._good.pop(_digest(token), None)
        self._refusals.take(host, now)
        _remember(self._refused, _digest(token), (now, why))

    def good(self, token: str) -> None:
        """The token opened a node's subjects."""
        _remember(self._good, _digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _remember(known: OrderedDict[bytes, V], digest: bytes, what: V) -> None:
    known[digest] = what
    known.move_to_end(digest)
    if len(known) > REMEMBERED:
        known.popitem(last=False)
