"""The five fields of a cron schedule, as the reference reads them (advancedcronjob.md §4.4).

Dialects of cron differ: in what a star with a step means for days, whether 7 is a Sunday, which signs there are beside
numbers. So the fields are checked here and rewritten into what all dialects read alike: a star, or a list of numbers.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

MACROS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

LONGEST = 1000
"""Characters: all numbers of all fields take half as many."""

_STARS = ("*", "?")
_PART = re.compile(r"(?P<low>[^-/]+)(-(?P<high>[^-/]+))?(/(?P<step>[^-/]+))?")
_NUMBER = re.compile(r"[0-9]{1,18}")


class Field(msgspec.Struct, frozen=True):
    """One of the five: its numbers, and the names that some of them have."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()  # of the numbers from `least` on

    def rewritten(self, text: str) -> str:
        """The field as a star, or as its numbers in order. Raises ValueError."""
        parts = [self._part(part) for part in text.split(",")]
        if any(star for star, _ in parts):
            return "*"
        return ",".join(map(str, sorted({number for _, numbers in parts for number in numbers})))

    def _part(self, text: str) -> tuple[bool, Iterable[int]]:
        """An element of a list: whether it is a star, and its numbers. A star with a step is none: it restricts."""
        found = _PART.fullmatch(text)
        if found is None:
            raise self._error(text, "is no number, range or step")
        low, high, step = found["low"], found["high"], found["step"]
        every = 1 if step is None else self._step(step)
        if low in _STARS and high is None:
            return every == 1, range(self.least, self.most + 1, every)
        first = self._number(low)
        last = self._number(high) if high else first if step is None else self.most
        if first > last:
            raise self._error(text, "is a range that ends before it begins")
        return False, range(first, last + 1, every)

    def _step(self, text: str) -> int:
        if not _NUMBER.fullmatch(text) or int(text) == 0:
            raise self._error(text, "is no step")
        return int(text)

    def _number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.least + self.names.index(text.lower())
        if not _NUMBER.fullmatch(text) or not self.least <= int(text) <= self.most:
            raise self._error(text, f"is not in {self.least}-{self.most}")
        return int(text)

    def _error(self, text: str, what: str) -> ValueError:
        return ValueError(f"{self.name}: {text!r} {what}")


FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


def rewritten(text: str) -> str:
    """The schedule, a macro included, in five fields of stars and numbers. Raises ValueError with what is wrong."""
    if len(text) > LONGEST:
        raise ValueError(f"a schedule must be no more than {LONGEST} characters")
    if text.startswith("@") and text not in MACROS:
        raise ValueError(f"unrecognized descriptor: {text}")
    fields = MACROS.get(text, text).split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"expected exactly {len(FIELDS)} fields, found {len(fields)}: {text!r}")
    return " ".join(field.rewritten(part) for field, part in zip(FIELDS, fields, strict=True))
