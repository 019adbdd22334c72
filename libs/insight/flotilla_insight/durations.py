"""Durations, ages and sizes for people."""

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


def size(count: float) -> str:
    """Format bytes for people: `512 B`, `3.4 KiB`, `1.2 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
