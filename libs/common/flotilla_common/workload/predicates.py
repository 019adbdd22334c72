"""What a pod is worth right now, and which one is updated first (common.md §5)."""

from datetime import datetime, timedelta

from flotilla_common.api.core import Pod

OrderKey = tuple[bool, int, bool, float, int, int, float, str]


def ready_for(pod: Pod, min_ready_seconds: int, now: datetime) -> bool:
    """Ready, and so for longer than `min_ready_seconds` ("available(m)")."""
    if min_ready_seconds <= 0:
        return pod.ready
    since = pod.ready_since
    return since is not None and since + timedelta(seconds=min_ready_seconds) < now


def available_at(pod: Pod, min_ready_seconds: int) -> datetime | None:
    """The moment after which a ready pod counts as available, if nothing changes; None while it is not ready."""
    since = pod.ready_since
    return None if since is None else since + timedelta(seconds=max(min_ready_seconds, 0))


def default_order_key(pod: Pod) -> OrderKey:
    """Sorts pods so that the first is updated first."""
    raise NotImplementedError
