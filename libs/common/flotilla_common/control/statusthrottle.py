"""Schedules status writes: at once, with the next pass, or at a later turn.

A status write is expensive: a custom resource that is served in two versions costs the apiserver as much as three
writes of pods (docs/performance.md). So an urgent status of a pass that also writes dependents is left to the next
pass, which follows at once and sees their outcome: one write reports both. Statuses that only change counts keep a
minimum distance, per object and overall. The end of a rollout is urgent, because no pass follows it.
"""

from flotilla_common.control.keystate import NEVER, KeyState

INTERVAL = 0.5
"""Seconds between two writes of one object's counts."""

SPACING = 0.25
"""Seconds between such writes of any two objects: they never cost more than a few percent of a core."""

LAG = 10.0
"""Longest time in seconds that an object's counts wait for their turn."""


class StatusThrottle:
    """The turns of one controller's objects. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._next_turn = float("-inf")

    def due(self, state: KeyState, now: float, *, urgent: bool, wrote: bool) -> float:
        """Return when the status should be written; `now` or earlier means at once, infinity with the next pass.

        `wrote` is whether the pass wrote dependents. The next pass begins with a status that is owed to it.
        """
        if urgent:
            if not wrote:
                return now
            state.status_owed = True
            return float("inf")
        if state.status_turn is None:
            first = now if state.status_written == NEVER else state.status_written + INTERVAL
            turn = state.status_turn = min(max(first, self._next_turn), now + LAG)
            self._next_turn = max(turn, self._next_turn) + SPACING
        return state.status_turn

    def written(self, state: KeyState, now: float) -> None:
        """Record that a status write of the object is being sent."""
        self.unneeded(state)
        state.status_written = now

    def missed(self, state: KeyState, now: float) -> None:
        """Keep the turn of an object after a conflict: its status must not wait long because others write it often."""
        state.status_turn = now

    def unneeded(self, state: KeyState) -> None:
        """Drop the object's turn, because the stored status is right."""
        state.status_owed, state.status_turn = False, None
