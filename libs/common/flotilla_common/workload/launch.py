"""Container launch priority as in-place updates see it (common.md §10)."""

from flotilla_common.api.core import Container


def launch_priority(container: Container) -> int | None:
    """The integer in the container's barrier env; higher is earlier. None without a barrier."""
    raise NotImplementedError
