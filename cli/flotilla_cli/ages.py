"""Ages as kubectl prints them."""

from datetime import datetime


def age(since: datetime | None, now: datetime) -> str:
    """`90s`, `12m`, `5h`, `3d`; a dash when the time is not known."""
    if since is None:
        return "-"
    seconds = max(int((now - since).total_seconds()), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
