"""Starts the node agent without modules that it does not need.

nats-py imports aiohttp if it is installed, for websockets, and structlog imports rich, for colours. Other services of
the same installation need them. Here they would take 12 of 55 MiB for nothing.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

UNNEEDED = frozenset({"aiohttp", "rich"})


class Absent(MetaPathFinder):
    """A finder that reports some modules as not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise for unneeded modules, and leave all others to the next finder."""
        if fullname in UNNEEDED:
            raise ModuleNotFoundError(f"{fullname} is kept out of the node agent", name=fullname)
        return None


def main() -> int:
    """Run until stopped by a signal and return the exit code."""
    sys.meta_path.insert(0, Absent())
    return import_module("flotilla_nodeagent.process").main()


if __name__ == "__main__":
    sys.exit(main())
