"""Finds what other packages add to the `flotilla` command, by their entry points.

`flotilla.commands` has a click command per name. `flotilla.local` has what flotilla-dev does for other commands:
`embedded-bus` starts the bus of `flotilla run`, `health` checks the processes of a local cluster.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

COMMANDS = "flotilla.commands"
LOCAL = "flotilla.local"
LOCAL_PACKAGE = "flotilla-dev"
"""The package with all that runs a local cluster."""


def commands() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name, not loaded yet."""
    return {point.name: point for point in entry_points(group=COMMANDS)}


def local(name: str) -> Any:
    """Return what flotilla-dev has under this name; None where it is not installed."""
    found = next(iter(entry_points(group=LOCAL, name=name)), None)
    return found.load() if found else None


def missing(what: str) -> str:
    """Return the error text for something that needs flotilla-dev where that is not installed."""
    return (
        f"{what} needs the package {LOCAL_PACKAGE}, which is not installed here. In a checkout of Flotilla, "
        f"`scripts/setup` installs it; elsewhere, install {LOCAL_PACKAGE} into the environment of this command."
    )
