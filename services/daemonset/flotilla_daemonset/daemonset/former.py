"""What pods that are gone leave behind on their nodes: their names, and how often they have failed (daemonset.md §4.6).

It is remembered by the process alone, and may be lost at any time: then a node's next pod may get the name of a former
one, and the next failed pod is deleted at once.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.meta import controller_of
from flotilla_common.clock import Clock
from flotilla_common.mirror.table import Table
from flotilla_common.workload.placement import node_of

FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=1), timedelta(minutes=15)
FORGIVEN_AFTER = timedelta(minutes=30)
"""A node without failures for so long begins anew."""


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """The last pod of a node."""

    name: str = ""
    failed_at: datetime | None = None  # when the last one went that had failed
    delay: timedelta = timedelta()  # how long after that the next failed one has to stay
    generation: int = 0  # of the DaemonSet then: a change of it begins anew

    def lingers_until(self, now: datetime, generation: int) -> datetime | None:
        """Until when a failed pod on the node is left alone; None if it may go now."""
        if self.failed_at is None or self.generation != generation:
            return None
        until = self.failed_at + self.delay
        return until if now < until else None

    def next_delay(self, now: datetime, generation: int) -> timedelta:
        """How long the pod after the next failed one has to stay."""
        if self.failed_at is None or self.generation != generation:
            return FIRST_DELAY
        if now >= self.failed_at + self.delay + FORGIVEN_AFTER:
            return FIRST_DELAY
        return min(self.delay * 2, LONGEST_DELAY)


class FormerPods:
    """Remembers them for all DaemonSets, from the tables' changes."""

    def __init__(self, daemonsets: Table[DaemonSet], pods: Table[Pod], clock: Clock) -> None:
        self._daemonsets = daemonsets
        self._clock = clock
        self._known: dict[str, dict[str, Former]] = {}  # by the DaemonSet's uid, and by node
        daemonsets.listen(self._forget)
        pods.listen(self._note)

    def of(self, uid: str) -> Mapping[str, Former]:
        """By node: the former pods of the DaemonSet with that uid."""
        return self._known.get(uid, {})

    def _forget(self, old: DaemonSet | None, new: DaemonSet | None) -> None:
        if new is None and old is not None:
            self._known.pop(old.metadata.uid, None)

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        """A pod is gone."""
        if old is None or new is not None:
            return
        owner = controller_of(old.metadata)
        daemonset = None if owner is None else self._daemonsets.by_uid(owner.uid)
        node = node_of(old)
        if owner is None or owner.kind != DAEMON_SET.kind or daemonset is None or not node:
            return
        known = self._known.setdefault(owner.uid, {})
        before = known.get(node, Former())
        name = old.metadata.name
        if old.status.phase != "Failed":
            known[node] = msgspec.structs.replace(before, name=name)
            return
        now, generation = self._clock.now(), daemonset.status.observed_generation
        delay = before.next_delay(now, generation)
        known[node] = Former(name=name, failed_at=now, delay=delay, generation=generation)
