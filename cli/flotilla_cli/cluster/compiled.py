"""How far a build has come, counted: the packages that are to be compiled, against those that Go has begun."""

from collections.abc import Iterable

import msgspec

EARLY = 0.05
"""Of all packages; before that many are compiled nothing is said about the time left."""


class Compiled(msgspec.Struct):
    """The packages of one build. `expected`: those that are not in Go's cache."""

    expected: frozenset[str]
    begun: set[str] = set()

    def read(self, lines: Iterable[str]) -> None:
        """Take in what `go build -v` printed: a line per package, and messages, which are left out."""
        self.begun.update(self.expected.intersection(line.strip() for line in lines))

    def line(self, elapsed: float) -> str:
        """What people are told after that many seconds of compiling."""
        done, total = len(self.begun), len(self.expected)
        if done == total:
            return f"linking, {elapsed:.0f} s"
        share = done / total
        left = f", about {duration(elapsed / share * (1 - share))} left" if share >= EARLY else ""
        return f"{done:,} of {total:,} packages{left}"


def duration(seconds: float) -> str:
    """Seconds as people say them: `40 s`, `3 min`."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
