"""Answers NATS auth callout requests: a server asks who a client is and gets a signed response (NATS ADR-26).

Request and response are tokens (JWTs). The request names the server, a key that the server made for this connection,
and the client's credentials. The response is addressed to that server and key, is signed by the account that the server
trusts, and holds the user's own token with name, permissions and expiry.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.bus.permissions import Permissions
from flotilla_common.bus.tokens import KeyPair, claims_of, verified

SUBJECT = "$SYS.REQ.USER.AUTH"
ACCOUNT = "$G"
"""The account of all users of Flotilla: the server's default account."""


class _Server(msgspec.Struct):
    id: str = ""


class _Client(msgspec.Struct):
    host: str = ""


class _Options(msgspec.Struct):
    auth_token: str = ""


class _Asked(msgspec.Struct):
    server_id: _Server
    user_nkey: str
    client_info: _Client = msgspec.field(default_factory=_Client)
    connect_opts: _Options = msgspec.field(default_factory=_Options)


class _Claims(msgspec.Struct):
    iss: str
    nats: _Asked


class Question(msgspec.Struct, frozen=True):
    """An authorization request from a NATS server about one connecting client."""

    server: str
    user_key: str
    token: str  # the client's token; empty when it presented other credentials
    host: str = ""  # the client's address, as the server sees it

    def __repr__(self) -> str:
        return f"Question(server={self.server})"


def read_question(data: bytes) -> Question:
    """Decode the server's request. Raises ValueError unless the server that it names has signed it."""
    text = data.decode()
    claims = msgspec.json.decode(claims_of(text), type=_Claims)
    verified(text, claims.iss)
    asked = claims.nats
    if asked.server_id.id != claims.iss:
        raise ValueError("the token is not signed by the server that it names")
    return Question(asked.server_id.id, asked.user_nkey, asked.connect_opts.auth_token, asked.client_info.host)


def allow(
    question: Question, issuer: KeyPair, *, name: str, permissions: Permissions, now: datetime, lasting: timedelta
) -> bytes:
    """Return the response that logs the client in as user `name` for the duration `lasting`."""
    user = issuer.sign(
        {
            "jti": f"{question.user_key}-{int(now.timestamp())}",
            "iat": int(now.timestamp()),
            "exp": int((now + lasting).timestamp()),
            "iss": issuer.public,
            "sub": question.user_key,
            "aud": ACCOUNT,
            "name": name,
            "nats": {
                "pub": {"allow": permissions.publish},
                "sub": {"allow": permissions.subscribe},
                "subs": -1,
                "data": -1,
                "payload": -1,
                "type": "user",
                "version": 2,
            },
        }
    )
    return _answer(question, issuer, now, {"jwt": user})


def refuse(question: Question, issuer: KeyPair, why: str, now: datetime) -> bytes:
    """Return the response that rejects the client."""
    return _answer(question, issuer, now, {"error": why})


def _answer(question: Question, issuer: KeyPair, now: datetime, outcome: dict[str, Any]) -> bytes:
    claims: dict[str, object] = {
        "jti": f"{question.user_key}-{int(now.timestamp())}-answer",
        "iat": int(now.timestamp()),
        "iss": issuer.public,
        "sub": question.user_key,
        "aud": question.server,
        "nats": outcome | {"type": "authorization_response", "version": 2},
    }
    return issuer.sign(claims).encode()
