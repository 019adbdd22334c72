"""Searches administrators' regular expressions with RE2.

The syntax is Go's, and every search takes linear time in the length of the text.
"""

from functools import lru_cache
from typing import Protocol

import re2

LONGEST_PATTERN = 4096
"""The most characters of a pattern; RE2 compiles each of them, and its repetitions, into instructions."""

LONGEST_TEXT = 400
"""The most characters of a text: names of containers and keys of annotations are shorter; others do not match."""

_MEMORY = 1 << 18  # bytes that a compiled pattern may take
_KEPT = 64


class Pattern:
    """A compiled pattern."""

    def __init__(self, searcher: "_Searcher") -> None:
        self._searcher = searcher

    def search(self, text: str) -> bool:
        """Report whether the pattern matches anywhere in the text."""
        return len(text) <= LONGEST_TEXT and self._searcher.search(text) is not None


class _Searcher(Protocol):
    def search(self, text: str) -> object | None: ...


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> Pattern:
    """Compile the pattern. Raises ValueError if RE2 refuses it or it is too large."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"a pattern must be no more than {LONGEST_PATTERN} characters")
    try:
        return Pattern(re2.compile(pattern, _options()))
    except re2.error as error:
        why = error.args[0]
        raise ValueError(f"{pattern!r}: {why.decode() if isinstance(why, bytes) else why}") from error


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options
