"""Whether the containers of a pod run what its in-place update asked for (common.md §9.6)."""

from flotilla_common.api.core import Pod
from flotilla_common.gates import Gates


def completed(pod: Pod, gates: Gates) -> bool:
    """No grace period, no later batch, and all changed containers were restarted with the new content."""
    raise NotImplementedError
