"""The node agent's start: keeps out what it does not need, then runs.

nats-py imports aiohttp if there is any, for websockets, and structlog imports rich, for colours. Both are there,
because other services share the installation. Here they would be 12 of 55 MiB, for nothing.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

UNNEEDED = frozenset({"aiohttp", "rich"})


class Absent(MetaPathFinder):
    """Says of some modules that they are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises for these, and leaves all others to the next finder."""
        if fullname in UNNEEDED:
            raise ModuleNotFoundError(f"{fullname} is kept out of the node agent", name=fullname)
        return None


def main() -> int:
    """Run until told to stop; returns the exit code."""
    sys.meta_path.insert(0, Absent())
    return import_module("flotilla_nodeagent.process").main()


if __name__ == "__main__":
    sys.exit(main())
