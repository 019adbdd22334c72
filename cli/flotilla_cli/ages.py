"""Ages and spans as kubectl prints them."""

from datetime import datetime


def span(seconds: float) -> str:
    """`90s`, `12m`, `5h`, `3d`; never negative."""
    whole = max(int(seconds), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def age(since: datetime | None, now: datetime) -> str:
    """The span since then; a dash when the time is not known."""
    return "-" if since is None else span((now - since).total_seconds())
