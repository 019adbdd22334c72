"""Tracks active pod rules (ADR 15): required, pending, and recently released.

A released rule stays for a while because another replica may be admitting an object that cannot be seen yet: otherwise,
each replica would remove what the other has just added.
"""

from collections.abc import Callable, Collection, Iterable

from flotilla_common.api.podrules import PodRule
from flotilla_common.api.rulebounds import bounded, standing_for
from flotilla_common.clock import Clock

LINGER_SECONDS = 10.0
"""Time for which a released rule stays.

An admitted object is seen within a second; the rest is for a slow apiserver.
"""

_LOOK_SECONDS = 2.0


class ActiveRules:
    """The rules of this replica."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[PodRule, float] = {}  # when rules expire that no known object requires
        self._active: frozenset[PodRule] = frozenset()

    def expect(self, rules: Iterable[PodRule]) -> None:
        """Add rules for an object that is about to be stored."""
        expected = frozenset(rules)
        self._until |= dict.fromkeys(expected, self._clock.monotonic() + LINGER_SECONDS)
        self._active = bounded(self._active | expected)

    def covering(self, rule: PodRule) -> PodRule:
        """Return the active or pending rule that covers this one: itself, or a wider one."""
        return standing_for(rule, self._active)

    def rules(self, needed: Collection[PodRule], stored: Collection[PodRule], *, known: bool) -> frozenset[PodRule]:
        """Return the active rules, given the stored ones. Until all objects are `known`, no rule is removed."""
        now, needed = self._clock.monotonic(), bounded(needed)
        for rule in set(stored) - needed:
            self._until.setdefault(rule, now + LINGER_SECONDS)
        staying = {rule for rule, end in self._until.items() if end > now or (not known and rule in stored)}
        self._until = {rule: end for rule, end in self._until.items() if rule in staying and rule not in needed}
        self._active = bounded(needed | staying)
        return self._active

    async def expire(self, notify: Callable[[], None]) -> None:
        """Call `notify` when a released rule expires, until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            if any(end <= self._clock.monotonic() for end in self._until.values()):
                notify()
