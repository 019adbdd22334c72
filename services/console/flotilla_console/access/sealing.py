"""Encryption of what cookies carry: only the console can read or make them.

All replicas have the same keys. The first key encrypts and all decrypt, so a key is replaced without ending sessions:
put the new one first, and remove the old one when the last session that it encrypted has expired.
"""

import hashlib
import hmac
from typing import TypeVar

import msgspec
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from flotilla_common.clock import Clock
from flotilla_console.access.files import FileError, lines_of

T = TypeVar("T", bound=msgspec.Struct)


class Seal:
    """Encrypts values, and proves texts, by keys."""

    def __init__(self, keys: tuple[bytes, ...], clock: Clock) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in keys])
        self._proving = tuple(hashlib.sha256(b"flotilla console csrf\0" + key).digest() for key in keys)
        self._clock = clock

    def close(self, value: msgspec.Struct) -> str:
        """Return the value, encrypted."""
        return self._fernet.encrypt_at_time(msgspec.json.encode(value), self._now()).decode()

    def open(self, text: str, kind: type[T], seconds: float) -> T | None:
        """Return the value, or None if no key of ours has made it, it is of another kind, or older than this."""
        try:
            return msgspec.json.decode(self._fernet.decrypt_at_time(text, int(seconds), self._now()), type=kind)
        except (InvalidToken, msgspec.MsgspecError, UnicodeEncodeError):
            return None

    def proof(self, text: str) -> str:
        """Return a proof that the console has named this text."""
        return _proof(self._proving[0], text)

    def proves(self, proof: str, text: str) -> bool:
        """Report whether the proof is one of this text, by any of the keys."""
        given = proof.encode(errors="replace")
        matches = [hmac.compare_digest(_proof(key, text).encode(), given) for key in self._proving]
        return any(matches)

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


def keys_of(file: str) -> tuple[bytes, ...]:
    """Return the keys of the file, or a new one if there is no file. Raises FileError."""
    if not file:
        return (Fernet.generate_key(),)
    lines = lines_of(file, "key file")
    for number, line in enumerate(lines, 1):
        try:
            Fernet(line)
        except ValueError as error:
            raise FileError(
                f"key file {file}: key {number} is not 32 bytes in base64 (URL alphabet), as from "
                "`head -c 32 /dev/urandom | base64 | tr +/ -_`"
            ) from error
    return lines


def _proof(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()
