"""Container launch priorities: the ConfigMap key that a container waits for (common.md §10, container-extras.md §B)."""

import re

from flotilla_common.api.core import Container
from flotilla_common.api.keys import CONTAINER_BARRIER_ENV
from flotilla_common.api.numbers import integer

_BARRIER_KEY = re.compile(r"p_(-?\d+)")


def barrier_key(container: Container) -> str | None:
    """Return the key in the container's barrier env, in any format; None without a barrier."""
    for env in container.env:
        if env.name == CONTAINER_BARRIER_ENV and env.value_from is not None and env.value_from.config_map_key_ref:
            return env.value_from.config_map_key_ref.key
    return None


def launch_priority(container: Container) -> int | None:
    """Return the integer in the container's barrier env (higher is earlier); None without a valid barrier."""
    match = _BARRIER_KEY.fullmatch(barrier_key(container) or "")
    return integer(match[1]) if match else None
