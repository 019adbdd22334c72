"""Single values: plausible ones and unexpected ones."""

import random
import sys
from functools import cache
from typing import Any

import msgspec

Value = Any

LABELS = {"app": "web"}
"""All plausible labels and selectors are these, so that objects belong together."""

WORDS = (
    *(
        "web",
        "main",
        "app",
        "data",
        "nginx:1",
        "1",
        "10%",
        "50%",
        "true",
        "shop",
        "node-1",
        "a/b",
        "/data",
        "500m",
        "1Gi",
    ),
    *("v1", "apps/v1", "Pod", "Secret", "ConfigMap", "StatefulSet", "Never", "Always", "*/5 * * * *", "UTC"),
)
"""Plausible texts: names, images, percentages, quantities. There are few, so that objects refer to each other."""

NUMBERS = (0, 1, 1, 2, 3, 5, 10, 100)
ENDS = (-1, -(2**31), 2**31 - 1, 2**31, 5_000_000, 10**12, -(2**63), 2**63 - 1, 2**64, 10**30)
TIMES = ("2026-03-01T12:00:00Z", "2026-02-28T00:00:00Z")
WRONG_TIMES = (
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "-0001-01-01T00:00:00Z"),
    *("2026-03-01T12:00:00", "2026-13-01T00:00:00Z", "yesterday", "1e400"),
)
WRONG_TEXTS = (
    *("", " ", "\x00", "\n", "\ud7ff", "ünïcödé", "null", "[]", "{}", "[null]", '{"a":null}', "-", "..", "../../etc"),
    *("0x1", "1e1000", "-0", "NaN", "+Inf", "1.5.5", "%", "-1%", "1000%", "1" * 400 + "%", "9" * 400, "9" * 5000),
    *(
        "1" * 300 + "x",
        "(a+)+$",
        "a{1000}{1000}",
        "(?P<n>",
        "[",
        "\\",
        "^(a|a)*$",
        "$(A)" * 200,
        "{{.}}",
        "*/0 * * * *",
    ),
    *("* " * 300, "TZ=Mars/Base 0 0 * * *", "0 0 30 2 *", "a" * 64, "a" * 254, "a." * 130, "web-2147483648", "web-01"),
)
_HUGE = ("1", "a", "(", "[", '{"', "%", "0 ", "a,", "a/", "é", "\\", "-")


class Values:
    """Draws values; `spite` is the chance of an unexpected one, `room` how many bytes all huge ones may take."""

    def __init__(self, dice: random.Random, spite: float, room: int = 0) -> None:
        self.dice = dice
        self.spite = spite
        self._room = room

    def is_spiteful(self) -> bool:
        """Report whether the next value is an unexpected one."""
        return self.dice.random() < self.spite

    def text(self, *plausible: str) -> Value:
        """Return a text, or a value of another type."""
        if not self.is_spiteful():
            return self.dice.choice(plausible or WORDS)
        return self.wrong_text() if self.dice.random() < 0.8 else self.wild()

    def wrong_text(self) -> str:
        """Return a text that is broken, long, deep or hard to read."""
        chance = self.dice.random()
        if chance < 0.1:
            return self._huge_text()
        if chance < 0.3:
            return bytes(self.deep()).decode()
        return self.dice.choice(WRONG_TEXTS + WRONG_TIMES)

    def integer(self, lowest: int = -sys.maxsize, highest: int = sys.maxsize) -> Value:
        """Return a whole number within the bounds of its format, or another value."""
        if not self.is_spiteful():
            return self.dice.choice(NUMBERS)
        if self.dice.random() < 0.8:
            return self.dice.choice([end for end in (*ENDS, lowest, highest) if lowest <= end <= highest])
        return self.wild()

    def flag(self) -> Value:
        """Return a boolean, or a value of another type."""
        return self.wild() if self.is_spiteful() else self.dice.random() < 0.5

    def time(self) -> Value:
        """Return a time, or a malformed one."""
        return self.dice.choice(WRONG_TIMES) if self.is_spiteful() else self.dice.choice(TIMES)

    def wild(self) -> Value:
        """Return any JSON."""
        return self.dice.choice(
            (None, None, [], {}, 0, 1.5, -1e300, True, "x", [None], {"": None}, [[]], {"a": {"b": []}}, self.deep())
        )

    def deep(self) -> msgspec.Raw:
        """Return JSON that is nested hundreds or thousands of levels deep."""
        return deep(self.dice.choice((100, 1_000, 3_000, 9_000)), self.dice.random() < 0.5)

    def many(self, item: Value) -> Value:
        """Return a list with very many copies of the item, within the remaining room."""
        size = len(msgspec.json.encode(item)) + 1
        return [item] * min(self._take() // size, 500_000)

    def has_room(self) -> bool:
        """Report whether a huge value still fits in."""
        return self._room > 1_000

    def _huge_text(self) -> str:
        piece = self.dice.choice(_HUGE)
        return piece * max(self._take() // (2 * len(piece.encode())), 1)

    def _take(self) -> int:
        taken = int(self._room * self.dice.choice((0.1, 0.5, 1.0)))
        self._room -= taken
        return taken


@cache
def deep(levels: int, lists: bool) -> msgspec.Raw:
    """Return JSON nested this many levels deep."""
    opening, closing = (b"[", b"]") if lists else (b'{"a":', b"}")
    return msgspec.Raw(opening * levels + b"1" + closing * levels)
