"""From single writes to what they were about: a pod that is updated costs three, and people count pods.

Writes on one object for one cause are one piece of work. It ends when the pod is whole again: an update in place with
the pass that makes the pod ready (`refresh`), a creation when the pod is Ready. Pieces that one pass began are a wave;
of many waves those that lie closest together become one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.history.records import Pod
from flotilla_cli.traffic.act import Act

REFRESH = "refresh"
"""The cause of the write that ends an update in place."""

IN_PLACE = "in-place update"
"""How the cause of the writes that begin one begins."""

WAVES = 8
"""Of one kind of work, so that a rollout fits on one screen."""


class Piece(msgspec.Struct, kw_only=True):
    """What was done to one object for one cause. `ended` is None while it is not done, where that can be known."""

    kind: str
    name: str
    cause: str
    action: str
    trace: str
    began: datetime
    last: datetime
    ended: datetime | None = None
    pod: Pod | None = None  # what it tells of itself, if that is about this piece

    @property
    def lasts(self) -> bool:
        """Whether it is done only when the pod is, and that is known."""
        made = self.action == "create" and self.pod is not None
        return self.kind == "Pod" and (made or self.cause.startswith(IN_PLACE))

    @property
    def seconds(self) -> float | None:
        """How long it took, where that is known."""
        return (self.ended - self.began).total_seconds() if self.ended else None


class Wave(msgspec.Struct):
    """Pieces of one cause that were begun together."""

    pieces: list[Piece]

    @property
    def began(self) -> datetime:
        return min(piece.began for piece in self.pieces)

    @property
    def last(self) -> datetime:
        """When the last one was begun."""
        return max(piece.began for piece in self.pieces)


def pieces(writes: Iterable[Act], own: str, pods: Mapping[str, Pod]) -> list[Piece]:
    """What the writes amount to, in order. Writes on the status of the object itself, whose kind is `own`, are none."""
    made: list[Piece] = []
    open_ones: dict[tuple[str, str], Piece] = {}
    for write in writes:
        where = (write.kind, write.name)
        held = open_ones.get(where)
        if not write.ok or (write.kind == own and write.subresource == "status"):
            continue
        if write.cause == REFRESH:
            if held is not None and held.ended is None:
                held.ended = write.at
        elif held is not None and held.cause == write.cause and held.ended is None:
            held.last = write.at
        else:
            open_ones[where] = piece = _piece(write)
            made.append(piece)
    for piece in made:
        piece.pod = pods.get(piece.name)
        _close(piece)
    return made


def _piece(write: Act) -> Piece:
    return Piece(
        kind=write.kind,
        name=write.name,
        cause=write.cause,
        action=write.action,
        trace=write.trace,
        began=write.at,
        last=write.at,
    )


def _close(piece: Piece) -> None:
    """A creation ends when the pod is ready, which the pod tells in whole seconds, without the rest."""
    if not piece.lasts:
        piece.ended = piece.last
    elif piece.action == "create":
        ready = piece.pod.ready if piece.pod else None
        piece.ended = max(ready, piece.ended or piece.last) if ready else None


def waves(found: Sequence[Piece], most: int = WAVES) -> list[Wave]:
    """The pieces by cause and pass, at most so many for each cause, in the order in which they began."""
    by_cause: dict[tuple[str, str], dict[str, Wave]] = {}
    for piece in found:
        passes = by_cause.setdefault((piece.kind, piece.cause), {})
        passes.setdefault(piece.trace, Wave([])).pieces.append(piece)
    merged = [wave for passes in by_cause.values() for wave in _merged(list(passes.values()), most)]
    return sorted(merged, key=lambda wave: wave.began)


def _merged(found: list[Wave], most: int) -> list[Wave]:
    found.sort(key=lambda wave: wave.began)
    while len(found) > most:
        gaps = [(found[at + 1].began - found[at].last, at) for at in range(len(found) - 1)]
        _, at = min(gaps)
        found[at : at + 2] = [Wave(found[at].pieces + found[at + 1].pieces)]
    return found
