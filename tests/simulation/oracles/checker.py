"""Checks a whole history against every rule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.resources import LEASE
from tests.simulation.history import Version
from tests.simulation.oracles import availability, fencing, lifecycle, ownership, population
from tests.simulation.oracles.flapping import Flapping
from tests.simulation.oracles.unready_pods import UnreadyPods
from tests.simulation.oracles.view import VISIBILITY_LAG, Commit, View, ours
from tests.simulation.restored_copies import RESTORED_NAMESPACE
from tests.simulation.scenarios import every_rule

Rule = Callable[[View, Commit], Iterator[str]]

RULES: Sequence[Callable[[], Rule]] = (
    lambda: availability.max_unavailable,
    lambda: availability.ready_as_listed,
    UnreadyPods,
    lambda: availability.changed_out_of_service,
    lambda: population.partition,
    lambda: lifecycle.arrows,
    lambda: lifecycle.hooks,
    lambda: ownership.living_owner,
    lambda: ownership.only_own_pods,
    lambda: ownership.release_and_adopt,
    lambda: ownership.one_revision_per_template,
    lambda: fencing.holds_the_lease,
    Flapping,
)
"""The rules of all workloads; scenarios add those of one kind (`every_rule`).

They are created for each history, since some keep state. A rule with `checks_leases` receives commits of leases, too.
"""

MAX_BREACHES = 5
"""How many breaches of one run are reported: the first ones show what happened."""


class Breach(msgspec.Struct, frozen=True):
    """The breach of a rule by one version."""

    version: Version
    text: str

    def __str__(self) -> str:
        version = self.version
        return f"{version.at:.3f} s, {version.writer} ({version.resource.plural} {version.name}): {self.text}"


class Checker:
    """A checker of one history while it is recorded. `breaches` are in order."""

    def __init__(self, epoch: datetime, lag: float = VISIBILITY_LAG) -> None:
        """Create a checker. `epoch`: the wall time of fake second 0. `lag`: how far controllers may be behind."""
        self.breaches: list[Breach] = []
        self.view = View(epoch, lag)
        self._rules = [make() for make in (*RULES, *every_rule())]
        self._of_leases = [rule for rule in self._rules if getattr(rule, "checks_leases", False)]

    def take(self, version: Version) -> None:
        """Check the next version."""
        if version.namespace == RESTORED_NAMESPACE:
            if ours(version.writer):
                self.breaches.append(Breach(version, "is a write on a stranger of another namespace"))
            return
        if len(self.breaches) < MAX_BREACHES:
            commit = self.view.take(version)
            # Three of four versions are renewals of leases, which hardly any rule is about.
            rules = self._of_leases if version.resource == LEASE else self._rules
            self.breaches += [Breach(version, text) for rule in rules for text in rule(self.view, commit)]


def check_history(versions: Iterable[Version], *, epoch: datetime, lag: float = VISIBILITY_LAG) -> list[Breach]:
    """Return the breaches of a history that is over."""
    one = Checker(epoch, lag)
    for version in versions:
        one.take(version)
    return one.breaches
