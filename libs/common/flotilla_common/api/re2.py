"""Regular expressions of administrators, in the syntax of RE2 as Go has it.

What Go would refuse is refused, and the rest is translated for Python's own engine: a pattern that works here works
there. The texts are names of containers and keys of annotations: short, ASCII, without line ends. So classes of Unicode
(`\\p`) are refused, too, and time is no matter.
"""

import re
from functools import lru_cache

MAX_REPEAT = 1000
"""How often something can be asked to repeat, as in Go."""

_REPEAT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_FLAGS = re.compile(r"\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\?P?<(\w+)>", re.ASCII)
_NUMBER = re.compile(r"x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,6}\}|0[0-7]{0,2}|[1-7][0-7]{1,2}")
_POSIX = re.compile(r"\[:(\^?)(\w+):\]")
_SETS = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, to search with. Raises ValueError for one that RE2 does not know."""
    try:
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"{pattern!r}: {error}") from error


class _Translation:
    """One pattern on its way from one syntax to the other."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._written: list[str] = []
        self._flags: list[list[str]] = [[]]  # per open group: flags that hold until it ends
        self._repeated = False  # what was written last is a repetition

    def text(self) -> str:
        while self._at < len(self._pattern):
            self._step(self._pattern[self._at])
        if len(self._flags) > 1:
            raise self._refused("missing closing )")
        return "".join(self._written) + ")" * len(self._flags[0])

    def _step(self, char: str) -> None:
        repeat = self._repeat(char)
        if repeat and self._repeated:
            raise self._refused("invalid nested repetition operator")
        self._repeated = bool(repeat)
        if repeat:
            self._write(repeat, len(repeat))
        elif char == "\\":
            self._escape()
        elif char == "[":
            self._class()
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            inner = self._flags[-1]
            self._write(")" * len(inner) + "|" + "".join(inner), 1)
        else:
            self._write(char if char in ".^$" else re.escape(char), 1)

    def _write(self, text: str, length: int) -> None:
        self._written.append(text)
        self._at += length

    def _repeat(self, char: str) -> str:
        """The repetition that begins here; empty if none does."""
        counted = _REPEAT.match(self._pattern, self._at) if char == "{" else None
        if counted:
            least, most = int(counted[1]), int(counted[3] or counted[1])
            if not least <= most <= MAX_REPEAT:
                raise self._refused("invalid repeat count")
        elif char not in "*+?":
            return ""
        operator = counted[0] if counted else char
        return operator + ("?" if self._rest(len(operator)).startswith("?") else "")

    def _rest(self, offset: int = 0) -> str:
        return self._pattern[self._at + offset :]

    def _escape(self) -> None:
        if self._rest().startswith("\\Q"):
            quoted = self._rest(2).partition("\\E")[0]
            self._write(re.escape(quoted), len(quoted) + 2 + (2 if "\\E" in self._rest(2) else 0))
            return
        text, length = self._escaped(self._rest(1), "AbB")
        self._write(text, length + 1)

    def _escaped(self, rest: str, anchors: str = "") -> tuple[str, int]:
        """What stands for the text behind a backslash, and how much of it."""
        char = rest[:1]
        if number := _NUMBER.match(rest):
            digits = number[0].lstrip("x").strip("{}")
            return re.escape(chr(int(digits, 16 if char == "x" else 8))), number.end()
        if anchors and char == "z":
            return r"\Z", 1
        known = char and (char in "afnrtvdDsSwW" + anchors or (char.isascii() and not char.isalnum()))
        if not known:
            raise self._refused(f"invalid escape sequence \\{char}")
        return f"\\{char}", 1

    def _class(self) -> None:
        """A set of characters, one item after the other: what is literal is written so that Python takes it so."""
        start = 2 if self._rest(1).startswith("^") else 1
        self._write("[^" if start == 2 else "[", start)
        first = True
        while first or not self._rest().startswith("]"):
            first = False
            self._item()
        self._write("]", 1)

    def _item(self) -> None:
        posix = _POSIX.match(self._pattern, self._at)
        if posix:
            self._write(self._set(posix), len(posix[0]))
            return
        low, length = self._character()
        self._at += length
        if not re.match(r"-[^\]]", self._rest()):
            self._written.append(low)
            return
        self._at += 1
        high, length = self._character()
        if re.fullmatch(r"\\[dDsSwW]", low) or re.fullmatch(r"\\[dDsSwW]", high):
            raise self._refused("invalid character class range")
        self._write(f"{low}-{high}", length)

    def _character(self) -> tuple[str, int]:
        char = self._rest()[:1]
        if not char:
            raise self._refused("missing closing ]")
        if char != "\\":
            return re.escape(char), 1
        text, length = self._escaped(self._rest(1))
        return text, length + 1

    def _set(self, posix: re.Match[str]) -> str:
        if posix[2] not in _SETS:
            raise self._refused(f"invalid character class {posix[0]}")
        if not posix[1]:
            return _SETS[posix[2]]
        others = (char for char in map(chr, range(128)) if not re.match(f"[{_SETS[posix[2]]}]", char, re.ASCII))
        return "".join(map(re.escape, others)) + r"\x80-\U0010ffff"

    def _open(self) -> None:
        """A group, or flags that hold until the group around them ends."""
        self._at += 1
        named, flags = _NAMED.match(self._pattern, self._at), _FLAGS.match(self._pattern, self._at)
        if not self._rest().startswith("?"):
            self._write("(", 0)
        elif named:
            self._write(f"(?P<{named[1]}>", len(named[0]))
        elif flags:
            # Whether as little as possible is taken (U) does not matter to a search.
            on, off = (letters.replace("U", "") for letters in (flags[1], flags[2] or ""))
            opened = f"(?{on}{'-' + off if off else ''}:"
            self._write(opened, len(flags[0]))
            if flags[3] == ")":
                self._flags[-1].append(opened)
                return
        else:
            raise self._refused("invalid or unsupported Perl syntax")
        self._flags.append([])

    def _close(self) -> None:
        if len(self._flags) == 1:
            raise self._refused("unexpected )")
        self._write(")" * (len(self._flags.pop()) + 1), 1)

    def _refused(self, why: str) -> ValueError:
        return ValueError(f"{self._pattern!r}: {why}")
