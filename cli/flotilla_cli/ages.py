"""Ages and durations as kubectl prints them."""

from datetime import datetime


def span(seconds: float) -> str:
    """Format a duration as `90s`, `12m`, `5h` or `3d`; never negative."""
    whole = max(int(seconds), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def age(since: datetime | None, now: datetime) -> str:
    """Format the time since then; `-` if it is not known."""
    return "-" if since is None else span((now - since).total_seconds())
