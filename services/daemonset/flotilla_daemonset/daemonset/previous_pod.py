"""Tracks what deleted pods leave behind on their nodes: their names and their failures (daemonset.md §4.6).

This is kept in memory only and may be lost at any time: then a node's next pod may get the name of a former one, and
the next failed pod is deleted at once.
"""

from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.daemonset.types import DaemonSet
from flotilla_common.api.moments import later

FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=1), timedelta(minutes=15)
FORGIVEN_AFTER = timedelta(minutes=30)
"""The time without failures after which a node's backoff is reset."""


class PreviousPod(msgspec.Struct, frozen=True, kw_only=True):
    """The last deleted pod of a node, and the node's backoff."""

    name: str = ""
    failed_at: datetime | None = None  # when the last failed pod was deleted
    delay: timedelta = timedelta()  # how long after that the next failed pod has to stay
    generation: int = 0  # of the DaemonSet at that time: a change resets the backoff

    def lingers_until(self, now: datetime, generation: int) -> datetime | None:
        """Return until when a failed pod on the node is left alone; None if it may be deleted now."""
        if self.failed_at is None or self.generation != generation:
            return None
        until = later(self.failed_at, self.delay)
        return until if now < until else None

    def next_delay(self, now: datetime, generation: int) -> timedelta:
        """Return how long the pod after the next failed one has to stay."""
        if self.failed_at is None or self.generation != generation:
            return FIRST_DELAY
        if now >= later(self.failed_at, self.delay + FORGIVEN_AFTER):
            return FIRST_DELAY
        return min(self.delay * 2, LONGEST_DELAY)


def record_deletion(daemonset: DaemonSet, pod: Pod, before: PreviousPod | None, now: datetime) -> PreviousPod:
    """Return the record of a deleted pod of the DaemonSet, given the record of the previous pod on its node."""
    before, name = before or PreviousPod(), pod.metadata.name
    if pod.status.phase != "Failed":
        return msgspec.structs.replace(before, name=name)
    generation = daemonset.status.observed_generation
    return PreviousPod(name=name, failed_at=now, delay=before.next_delay(now, generation), generation=generation)
