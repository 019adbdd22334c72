"""Container launch priority as in-place updates see it (common.md §10)."""

import re

from flotilla_common.api.core import Container
from flotilla_common.api.keys import CONTAINER_BARRIER_ENV

_BARRIER_KEY = re.compile(r"p_(-?\d+)")


def launch_priority(container: Container) -> int | None:
    """The integer in the container's barrier env; higher is earlier. None without a (readable) barrier."""
    for env in container.env:
        if env.name == CONTAINER_BARRIER_ENV and env.value_from is not None and env.value_from.config_map_key_ref:
            match = _BARRIER_KEY.fullmatch(env.value_from.config_map_key_ref.key)
            return int(match[1]) if match else None
    return None
