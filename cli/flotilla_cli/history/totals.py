"""What a chapter came to, in numbers."""

from collections.abc import Sequence
from datetime import datetime
from statistics import median

import msgspec

from flotilla_cli.history.chapters import Chapter
from flotilla_cli.history.pieces import Piece


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


def totals(chapter: Chapter, work: Sequence[Piece], until: datetime | None) -> Totals:
    """`until`: when it was done; None while it is not."""
    until = until or _latest(chapter)
    lasting = [piece for piece in work if piece.lasts and piece.seconds is not None]
    slowest = max(lasting, key=lambda piece: piece.seconds or 0, default=None)
    last = max(lasting, key=lambda piece: piece.ended or piece.began, default=None)
    good = [write for write in chapter.writes if write.ok]
    on_pods = [write for write in good if write.kind == "Pod"]
    return Totals(
        seconds=round((until - chapter.began).total_seconds(), 3),
        writes=len(good),
        refused=len(chapter.writes) - len(good),
        decisions=len(chapter.decisions),
        pods=len({write.name for write in on_pods}),
        pod_writes=len(on_pods),
        typical_seconds=round(median(piece.seconds or 0 for piece in lasting), 3) if lasting else None,
        slowest_seconds=round(slowest.seconds or 0, 3) if slowest else None,
        slowest=slowest.name if slowest else "",
        last=last.name if last else "",
    )


def _latest(chapter: Chapter) -> datetime:
    moments = [one.at for one in chapter.decisions if one.at] + [write.at for write in chapter.writes]
    return max(moments, default=chapter.began)
