"""The time axis of a story: pauses, the line of unavailable pods, and who decided."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from flotilla_console.blocks.types import Gap, Point, Tick
from flotilla_insight.published import Act, Why

IDLE_SECONDS = 30.0
"""A pause is longer than this."""

MARGIN_SECONDS = 2.0
"""Time before and after a pause that is drawn in full."""

MOST_PODS = 1_000_000
"""The largest number of pods that is drawn: a record may contain any."""

MOST_POINTS = 2000


def gaps(moments: Iterable[float], start: float, end: float) -> tuple[Gap, ...]:
    """Return the pauses between `start` and `end` in which no moment lies."""
    within = sorted({start, end, *(moment for moment in moments if start < moment < end)})
    return tuple(
        Gap(before + MARGIN_SECONDS, after - MARGIN_SECONDS)
        for before, after in pairwise(within)
        if after - before > IDLE_SECONDS
    )


def unavailable(decisions: Iterable[Why], start: float, end: float) -> tuple[Point, ...]:
    """Return the number of unavailable pods, as decisions saw it."""
    return _steps(((one.at, _missing(one)) for one in decisions), start, end)


def allowed(decisions: Iterable[Why], start: float, end: float) -> tuple[Point, ...]:
    """Return maxUnavailable, as decisions saw it."""
    return _steps(((one.at, one.numbers.get("maxUnavailable")) for one in decisions), start, end)


def _missing(one: Why) -> int | None:
    wanted, available = one.numbers.get("replicas"), one.numbers.get("available")
    return None if wanted is None or available is None else wanted - available


def _steps(values: Iterable[tuple[datetime | None, int | None]], start: float, end: float) -> tuple[Point, ...]:
    """Return a point where the value changes; the last value before `start` counts from there."""
    points: list[Point] = []
    for at, value in values:
        if at is None or value is None or at.timestamp() > end:
            continue
        point = Point(max(at.timestamp(), start), min(max(value, 0), MOST_PODS))
        if points and points[-1].at == point.at:
            points.pop()
        if not points or points[-1].value != point.value:
            points.append(point)
    return tuple(points[-MOST_POINTS:])


def handovers(decisions: Sequence[Why], writes: Sequence[Act], service: str) -> tuple[Tick, ...]:
    """Return when another replica of the service began to decide and write: it was restarted, or lost the shard."""
    seen = [(one.at, one.replica) for one in decisions if one.at is not None and one.service == service]
    seen += [(one.at, one.replica) for one in writes if one.service == service]
    return tuple(_handovers(sorted(pair for pair in seen if pair[1]), service))


def _handovers(seen: Sequence[tuple[datetime, str]], service: str) -> Iterator[Tick]:
    known: set[str] = set()
    for (_, before), (at, after) in pairwise(seen):
        known.add(before)
        if after not in known:  # a late record of the former replica is no handover
            yield Tick(at.timestamp(), f"{service} restarted or handed over", "warn", f"replica {before} → {after}")
