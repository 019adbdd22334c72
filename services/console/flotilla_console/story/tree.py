"""The tree of a workload as it was at a moment: revisions, and pods with their states."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_console.blocks.types import Tone
from flotilla_console.story.lives import Life, Phase, State

TONES: Mapping[State, Tone] = {
    "exists": "idle",
    "creating": "busy",
    "recreating": "busy",
    "updating": "busy",
    "not ready": "bad",
    "ready": "ok",
    "terminating": "busy",
    "deleted": "idle",
}

LABELS: Mapping[State, str] = {
    "exists": "no record yet",
    "creating": "created, not ready yet",
    "recreating": "recreated, not ready yet",
    "updating": "updating in place",
    "not ready": "not ready",
    "ready": "ready",
    "terminating": "terminating",
    "deleted": "deleted",
}

_ORDER: Sequence[State] = (
    "not ready",
    "terminating",
    "recreating",
    "updating",
    "creating",
    "exists",
    "ready",
    "deleted",
)
_RANKS = {state: rank for rank, state in enumerate(_ORDER)}


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A revision with its pods, the troubled ones first."""

    revision: str
    """Empty: an earlier revision that no record names."""
    pods: tuple[tuple[str, State], ...]

    @property
    def counts(self) -> Mapping[State, int]:
        """Return the number of pods in each state, the troubled ones first."""
        found = Counter(state for _, state in self.pods)
        return {state: found[state] for state in _ORDER if found[state]}


def tree(lives: Iterable[Life], moment: datetime) -> list[Branch]:
    """Return the revisions that had pods at that moment, the one with most pods first."""
    found: dict[str, list[tuple[str, State]]] = {}
    for life in lives:
        phase = life.at(moment)
        if phase is not None and phase.state != "deleted":
            found.setdefault(phase.revision, []).append((life.name, phase.state))
    branches = [
        Branch(revision=revision, pods=tuple(sorted(pods, key=lambda pod: (_RANKS[pod[1]], pod[0]))))
        for revision, pods in found.items()
    ]
    return sorted(branches, key=lambda branch: (-len(branch.pods), branch.revision))


def by_trouble(lives: Iterable[Life], start: datetime, end: datetime) -> list[Life]:
    """Return the pods of a stretch of time: first those in trouble at its end, then those that changed last."""
    there = [(life, phase) for life in lives if (phase := life.at(end)) and _within(life, phase, start)]

    def rank(pair: tuple[Life, Phase]) -> tuple[int, float, str]:
        life, phase = pair
        changed = phase.start > start or any(start <= write.at <= end for write in life.writes)
        trouble = -1 if life.failed else _RANKS[phase.state]
        return (trouble if trouble < _RANKS["exists"] or changed else len(_ORDER)), -phase.start.timestamp(), life.name

    return [life for life, _ in sorted(there, key=rank)]


def is_quiet(life: Life, start: datetime, end: datetime) -> bool:
    """Report whether the pod was ready all the time, without a write."""
    phase = life.at(end)
    untouched = not any(start <= write.at <= end for write in life.writes)
    return untouched and phase is not None and phase.state in ("ready", "exists") and not life.failed


def _within(life: Life, phase: Phase, start: datetime) -> bool:
    """Report whether the pod existed after `start`."""
    return phase.state != "deleted" or phase.start >= start
