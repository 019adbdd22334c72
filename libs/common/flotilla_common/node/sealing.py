"""Encryption of pull secrets for one agent: a sealed box for the key that this agent's process has created.

The bus, its other clients, and a later process of the same agent cannot open it. Nothing is stored: a restarted agent
asks again.
"""

import base64

import msgspec
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from flotilla_common.node.reports import PullSecret

_decode = msgspec.json.Decoder(list[PullSecret]).decode


def seal(public_key: str, secrets: list[PullSecret]) -> str:
    """Seal the secrets for the owner of the key, as base64. Raises ValueError for an invalid key."""
    try:
        key = PublicKey(base64.b64decode(public_key, validate=True))
    except (CryptoError, TypeError) as error:
        raise ValueError(f"not a public key: {error}") from error
    return base64.b64encode(SealedBox(key).encrypt(msgspec.json.encode(secrets))).decode()


class Opener:
    """The private key of this process, which opens what is sealed for it."""

    def __init__(self) -> None:
        self._key = PrivateKey.generate()

    @property
    def public_key(self) -> str:
        """The key that secrets have to be sealed for, as base64."""
        return base64.b64encode(bytes(self._key.public_key)).decode()

    def open(self, sealed: str) -> list[PullSecret]:
        """Open a sealed box. Raises ValueError when it is sealed for another key, or damaged."""
        try:
            plain = SealedBox(self._key).decrypt(base64.b64decode(sealed, validate=True))
        except CryptoError as error:
            raise ValueError(f"cannot be opened: {error}") from error
        return _decode(plain)
