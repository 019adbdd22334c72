"""JSON that somebody wrote: annotations, conditions' messages, templates; and JSON as Go writes it.

What is read may be anything. What is no JSON, has another type than it must have, or is nested so deeply that nobody
means it, is a ValueError, and nothing else.
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
"""Levels of objects and arrays. A pod template has about 15."""

TOO_DEEP = f"nested more than {DEEPEST} levels deep"

_APISERVER_DEEPEST = 10_000
_FRAMES = 2_000


class Reader(Generic[T]):
    """Reads texts of one type, over and over again."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode

    def read(self, text: str | bytes | msgspec.Raw) -> T:
        """Return the value as the type says it. Raises ValueError that says why it cannot be read."""
        raw = text.encode() if isinstance(text, str) else bytes(text)
        try:
            if raw.count(b"{") + raw.count(b"[") > DEEPEST and is_too_deep(msgspec.json.decode(raw)):
                raise ValueError(TOO_DEEP)
            return self._decode(raw)
        except RecursionError as fault:
            raise ValueError(TOO_DEEP) from fault


def read_json(text: str | bytes | msgspec.Raw, kind: type[T]) -> T:
    """Read one text. Raises ValueError that says why it cannot be read."""
    return Reader(kind).read(text)


def is_too_deep(value: Any) -> bool:
    """Return whether the value is nested deeper than what is read. It is walked level by level: no recursion."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _parts(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def without_depths(document: Json) -> Json:
    """Return the document without the members that are nested too deeply; usually the document itself."""
    if not is_too_deep(document):
        return document
    return {key: value for key, value in document.items() if not is_too_deep(value)}


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def read_as_deep_as_the_apiserver() -> None:
    """Let this process decode whatever the apiserver stores: one object that is nested deeper than Python goes by
    default would end every watch that it is in. Decoding so deep takes 4 MiB of the stack."""
    sys.setrecursionlimit(_APISERVER_DEEPEST + _FRAMES)


def go_json(document: object, *, sort: bool = False) -> bytes:
    """Compact JSON with the escapes that Go adds: texts that are hashed have to match other programs byte for byte."""
    text = msgspec.json.encode(document, order="sorted" if sort else None)
    for plain, escaped in (_HTML | _LINES).items():
        text = text.replace(plain, escaped)
    return text
