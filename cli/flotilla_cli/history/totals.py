"""What a chapter came to, in numbers."""

from collections.abc import Sequence
from datetime import datetime
from statistics import median

import msgspec

from flotilla_cli.history.chapters import Chapter
from flotilla_cli.history.operations import Operation


class Totals(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What it came to. `seconds` until it was done, or until the last thing that happened; those of pods from the first
    write to being whole again."""

    seconds: float
    writes: int
    refused: int
    decisions: int
    pods: int
    pod_writes: int
    typical_seconds: float | None = None
    slowest_seconds: float | None = None
    slowest: str = ""
    last: str = ""  # the pod that was done last


def totals(chapter: Chapter, work: Sequence[Operation], until: datetime | None) -> Totals:
    """`until`: when it was done; None while it is not."""
    until = until or _latest(chapter)
    lasting = [one for one in work if one.lasts and one.seconds is not None]
    slowest = max(lasting, key=lambda one: one.seconds or 0, default=None)
    last = max(lasting, key=lambda one: one.ended or one.last, default=None)
    good = [write for write in chapter.writes if write.ok]
    on_pods = [write for write in good if write.kind == "Pod"]
    return Totals(
        seconds=round((until - chapter.began).total_seconds(), 3),
        writes=len(good),
        refused=len(chapter.writes) - len(good),
        decisions=len(chapter.decisions),
        pods=len({write.name for write in on_pods}),
        pod_writes=len(on_pods),
        typical_seconds=round(median(one.seconds or 0 for one in lasting), 3) if lasting else None,
        slowest_seconds=round(slowest.seconds or 0, 3) if slowest else None,
        slowest=slowest.begin.name if slowest else "",
        last=last.begin.name if last else "",
    )


def _latest(chapter: Chapter) -> datetime:
    moments = [one.at for one in chapter.decisions if one.at] + [write.at for write in chapter.writes]
    return max(moments, default=chapter.began)
