"""Holding a whole history against every rule."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from tests.simulation.history import Version
from tests.simulation.oracles import availability, claims, fencing, lifecycle, ownership, population
from tests.simulation.oracles.scene import SIGHT, Scene, Step

Rule = Callable[[Scene, Step], Iterator[str]]

RULES: Sequence[Callable[[], Rule]] = (
    lambda: availability.max_unavailable,
    lambda: availability.changed_out_of_service,
    lambda: population.max_surge,
    lambda: population.one_pod_per_instance,
    lambda: population.partition,
    lambda: lifecycle.arrows,
    lambda: lifecycle.hooks,
    lambda: ownership.living_owner,
    lambda: ownership.only_own_pods,
    lambda: ownership.release_and_adopt,
    lambda: ownership.one_revision_per_template,
    lambda: fencing.holds_the_lease,
    claims.ClaimsKept,
)
"""Makes every rule anew for a history: some remember what they saw."""

MOST_TOLD = 5
"""Breaches that are told of one run: the first ones say what happened."""


class Breach(msgspec.Struct, frozen=True):
    """A rule was broken by one version."""

    version: Version
    text: str

    def __str__(self) -> str:
        version = self.version
        return f"{version.at:.3f} s, {version.writer} ({version.resource.plural} {version.name}): {self.text}"


def judge(versions: Iterable[Version], *, epoch: datetime, blind: float = SIGHT) -> list[Breach]:
    """What breaks a rule, in order, at most MOST_TOLD. `blind`: fake seconds that controllers may lag behind."""
    scene, rules = Scene(epoch, blind), [make() for make in RULES]
    breaches: list[Breach] = []
    for version in versions:
        step = scene.take(version)
        breaches += [Breach(version, text) for rule in rules for text in rule(scene, step)]
        if len(breaches) >= MOST_TOLD:
            break
    return breaches[:MOST_TOLD]
