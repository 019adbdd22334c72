"""Nkeys: Ed25519 keys in NATS's encoding, and the tokens that are signed with them (NATS ADR-14).

A key is base32 over a byte for its kind, the key itself and a checksum: users begin with U, accounts with A, seeds with
S and the letter of their kind.
"""

import base64
import binascii
import os

import msgspec
from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

USER, ACCOUNT = 20 << 3, 0
"""Kinds of keys, as the first five bits of their encoding."""

_SEED = 18 << 3
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


class KeyPair:
    """A private key and its public half."""

    def __init__(self, kind: int, raw: bytes) -> None:
        self._kind = kind
        self._key = SigningKey(raw)

    @classmethod
    def generate(cls, kind: int) -> "KeyPair":
        """Generate a key."""
        return cls(kind, os.urandom(32))

    @classmethod
    def from_seed(cls, seed: str) -> "KeyPair":
        """Decode the key of a seed. Raises ValueError for anything else."""
        raw = _decoded(seed)
        if raw[0] & 0xF8 != _SEED or len(raw) != 34:
            raise ValueError("not a seed")
        return cls((raw[0] & 7) << 5 | raw[1] >> 3, raw[2:])

    @property
    def seed(self) -> str:
        """The private key, encoded as a seed."""
        return _encoded(bytes([_SEED | self._kind >> 5, (self._kind & 31) << 3]) + bytes(self._key))

    @property
    def public(self) -> str:
        """The public key, encoded."""
        return _encoded(bytes([self._kind]) + bytes(self._key.verify_key))

    def sign(self, claims: dict[str, object]) -> str:
        """Return a signed token with these claims."""
        text = f"{_part(_HEADER)}.{_part(claims)}"
        return f"{text}.{_url(self._key.sign(text.encode()).signature)}"


def verified(token: str, issuer: str) -> bytes:
    """Return the claims, as JSON, of a token that the issuer (a public key) signed. Raises ValueError for any other."""
    try:
        text, _, signature = token.rpartition(".")
        VerifyKey(_decoded(issuer)[1:]).verify(text.encode(), _unurl(signature))
    except (CryptoError, TypeError, binascii.Error) as error:
        raise ValueError(f"not a token of {issuer}") from error
    return claims_of(token)


def claims_of(token: str) -> bytes:
    """Return the claims of a token as JSON, without checking its signature. Raises ValueError for anything else."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("not a token")
    return _unurl(parts[1])


def _encoded(raw: bytes) -> str:
    checked = raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(checked).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error as error:
        raise ValueError("not a key") from error
    if len(raw) < 3 or binascii.crc_hqx(raw[:-2], 0).to_bytes(2, "little") != raw[-2:]:
        raise ValueError("the key's checksum is wrong")
    return raw[:-2]


def _part(document: object) -> str:
    return _url(msgspec.json.encode(document))


def _url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _unurl(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
