"""Reads JSON from untrusted sources (annotations, conditions' messages, templates) and writes JSON as Go does.

Input that is not JSON, has a wrong type, or is nested too deeply raises ValueError, and no other error.
"""

import sys
from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

import msgspec

from flotilla_common.api.documents import Json

_HTML = {b"<": b"\\u003c", b">": b"\\u003e", b"&": b"\\u0026"}
_LINES = {"\u2028".encode(): b"\\u2028", "\u2029".encode(): b"\\u2029"}

T = TypeVar("T")

DEEPEST = 100
"""The accepted levels of objects and arrays. A pod template has about 15."""

TOO_DEEP = f"nested more than {DEEPEST} levels deep"

_APISERVER_DEEPEST = 10_000
_FRAMES = 2_000


class Reader(Generic[T]):
    """A reusable reader of texts of one type."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode

    def read(self, text: str | bytes | msgspec.Raw) -> T:
        """Decode the text into the type. Raises ValueError with the reason."""
        raw = text.encode() if isinstance(text, str) else bytes(text)
        try:
            if raw.count(b"{") + raw.count(b"[") > DEEPEST and is_too_deep(msgspec.json.decode(raw)):
                raise ValueError(TOO_DEEP)
            return self._decode(raw)
        except RecursionError as fault:
            raise ValueError(TOO_DEEP) from fault


def read_json(text: str | bytes | msgspec.Raw, kind: type[T]) -> T:
    """Read one text. Raises ValueError with the reason."""
    return Reader(kind).read(text)


def is_too_deep(value: Any) -> bool:
    """Report whether the value is nested too deeply. Walks level by level, without recursion."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _parts(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def without_depths(document: Json) -> Json:
    """Return the document without members that are nested too deeply; usually the document itself."""
    if not is_too_deep(document):
        return document
    return {key: value for key, value in document.items() if not is_too_deep(value)}


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def read_as_deep_as_the_apiserver() -> None:
    """Let this process decode documents as deep as the apiserver stores them.

    With Python's default limit, one deeply nested object would end every watch that contains it. Decoding that deep
    takes 4 MiB of the stack.
    """
    sys.setrecursionlimit(_APISERVER_DEEPEST + _FRAMES)


def go_json(document: object, *, sort: bool = False) -> bytes:
    """Encode compact JSON with the escapes that Go adds, so that hashes match those of other programs."""
    text = msgspec.json.encode(document, order="sorted" if sort else None)
    for plain, escaped in (_HTML | _LINES).items():
        text = text.replace(plain, escaped)
    return text
