"""Limits of running rounds: on the node, and for one pod, so that no pod keeps the others from being probed.

A round that takes long counts for its pod until it ends, and for the node only at its beginning: the limit of pods
keeps hanging rounds few, and they must not hold up the rest.
"""

from collections import Counter, OrderedDict

from flotilla_nodeagent.probes.definitions import Key

SLOT_SECONDS = 2.0
"""Seconds for which a round counts for the node."""


class Slots:
    """Rounds of one sort. Times are monotonic seconds."""

    def __init__(self, at_once: int, per_pod: int) -> None:
        self._at_once = at_once
        self._per_pod = per_pod
        self._of_pod: Counter[str] = Counter()
        self._young: OrderedDict[Key, float] = OrderedDict()  # since when, the oldest first

    def pod_has_room(self, key: Key) -> bool:
        """Report whether another round of the probe's pod may start."""
        return self._of_pod[key[0]] < self._per_pod

    def node_has_room(self, now: float) -> bool:
        """Report whether another round on the node may start."""
        while self._young and now - next(iter(self._young.values())) >= SLOT_SECONDS:
            self._young.popitem(last=False)
        return len(self._young) < self._at_once

    def take(self, key: Key, now: float) -> None:
        """Count the round of a probe that begins."""
        self._of_pod[key[0]] += 1
        self._young[key] = now

    def give_back(self, key: Key) -> None:
        """Stop counting the round, which has ended."""
        self._young.pop(key, None)
        self._of_pod[key[0]] -= 1
        if not self._of_pod[key[0]]:
            del self._of_pod[key[0]]
