"""Keys of NATS users and accounts (nkeys), and the tokens that are signed with them (NATS ADR-14)."""

import base64
import os

import msgspec
import nkeys
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

USER, ACCOUNT = nkeys.PREFIX_BYTE_USER, nkeys.PREFIX_BYTE_ACCOUNT
"""Kinds of keys."""

_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}


class KeyPair:
    """A private key and its public half."""

    def __init__(self, seed: str) -> None:
        """Decode the key of a seed. Raises ValueError for anything else."""
        try:
            kind, raw = nkeys.decode_seed(seed.encode())
            encoded = nkeys.encode_seed(raw, kind)
        except (nkeys.NkeysError, IndexError) as error:
            raise ValueError("not a seed") from error
        # nkeys decodes seeds without looking at their checksum.
        if encoded.decode() != seed:
            raise ValueError("the seed's checksum is wrong")
        self._pair = nkeys.from_seed(encoded)

    @classmethod
    def generate(cls, kind: int) -> "KeyPair":
        """Generate a key of the kind."""
        return cls(nkeys.encode_seed(os.urandom(32), kind).decode())

    @property
    def seed(self) -> str:
        """The private key, encoded as a seed."""
        return self._pair.seed.decode()

    @property
    def public(self) -> str:
        """The public key, encoded."""
        return self._pair.public_key.decode()

    def sign(self, claims: dict[str, object]) -> str:
        """Return a signed token with these claims."""
        text = f"{_part(_HEADER)}.{_part(claims)}"
        return f"{text}.{_url(self._pair.sign(text.encode()))}"


def verified(token: str, issuer: str) -> bytes:
    """Return the claims, as JSON, of a token that the issuer (a public key) signed. Raises ValueError for any other."""
    try:
        text, _, signature = token.rpartition(".")
        VerifyKey(_key_of(issuer)).verify(text.encode(), _unurl(signature))
    except (CryptoError, TypeError, ValueError) as error:
        raise ValueError(f"not a token of {issuer}") from error
    return claims_of(token)


def claims_of(token: str) -> bytes:
    """Return the claims of a token as JSON, without checking its signature. Raises ValueError for anything else."""
    parts = token.split(".")
    if len(parts) != 3:
        raise ValueError("not a token")
    return _unurl(parts[1])


def _key_of(public: str) -> bytes:
    """Return the 32 bytes of a public key: between the byte of its kind and two bytes of a checksum."""
    return base64.b32decode(public)[1:-2]


def _part(document: object) -> str:
    return _url(msgspec.json.encode(document))


def _url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _unurl(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
