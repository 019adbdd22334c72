"""The plan while it is being written: what the steps of a pass add to, and what keeps a pod from being planned
twice."""

from collections.abc import Sequence
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain, Event, Reason, Stage

MAX_CHAINS_PER_PASS = 128
"""Creates, updates or deletes that one pass plans. Large enough to keep the executor's adaptive limit busy, small
enough that a set of thousands is worked off in overlapping waves, each planned from what the previous one brought
about."""

NAMED = 5
"""Pods that a message names; the rest are counted."""


def named(pods: Sequence[Pod], total: int = 0) -> str:
    """ "web-1, web-2 and 3 more". `total`: how many there are, when `pods` are only the first of them."""
    shown = ", ".join(pod.metadata.name for pod in pods[:NAMED])
    more = max(total, len(pods)) - min(len(pods), NAMED)
    return f"{shown} and {more} more" if more else shown


def pods_word(count: int) -> str:
    """ "1 pod", "2 pods"."""
    return f"{count} pod" if count == 1 else f"{count} pods"


class Draft:
    """Collects stages, events, reasons and timers of one pass."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.events: list[Event] = []
        self.reasons: list[Reason] = []
        self.errors: list[tuple[str, str]] = []
        self.numbers: dict[str, int] = {}
        self.wake_at: datetime | None = None
        self.touched: set[str] = set()  # uids of pods that this pass already writes

    def stage(
        self, chains: Sequence[Chain], *, slow_start: int = 0, stop_on_failure: bool = True, at: int | None = None
    ) -> None:
        """Add a stage at the end or at position `at`, unless it is empty."""
        kept = tuple(chain for chain in chains if chain)
        if kept:
            stage = Stage(chains=kept, slow_start=slow_start, stop_on_failure=stop_on_failure)
            self.stages.insert(len(self.stages) if at is None else at, stage)

    def reason(self, code: str, message: str, pods: Sequence[Pod] = ()) -> None:
        """Say why the CloneSet stands where it stands."""
        self.reasons.append(
            Reason(code=code, message=message, objects=tuple(pod.metadata.name for pod in pods[:NAMED]))
        )

    def wake(self, at: datetime | None) -> None:
        """Plan again at `at`; the earliest wish wins."""
        if at is not None:
            self.wake_at = at if self.wake_at is None else min(self.wake_at, at)

    def touch(self, pod: Pod) -> bool:
        """Claim the pod for a write of this pass. False when an earlier step already writes it."""
        if pod.metadata.uid in self.touched:
            return False
        self.touched.add(pod.metadata.uid)
        return True
