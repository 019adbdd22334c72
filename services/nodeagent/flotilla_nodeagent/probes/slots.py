"""How many rounds may be under way: on the node, and for one pod, so that no pod keeps the others from being probed.

A round that takes long counts for its pod until it ends, and for the node only at its beginning: rounds that hang are
few by the bound for their pods, and must not hold up the rest.
"""

from flotilla_nodeagent.probes.definitions import Key

SLOT_SECONDS = 2.0
"""How long a round counts for the node."""


class Slots:
    """Rounds of one sort. Times are monotonic seconds."""

    def __init__(self, at_once: int, per_pod: int) -> None:
        self._at_once = at_once
        self._per_pod = per_pod
        self._held: dict[Key, float] = {}  # since when

    def take(self, key: Key, now: float) -> bool:
        """Begin a round if there is room."""
        young = sum(now - since < SLOT_SECONDS for since in self._held.values())
        of_pod = sum(uid == key[0] for uid, _ in self._held)
        if young >= self._at_once or of_pod >= self._per_pod or key in self._held:
            return False
        self._held[key] = now
        return True

    def give_back(self, key: Key) -> None:
        """The round has ended."""
        self._held.pop(key, None)
