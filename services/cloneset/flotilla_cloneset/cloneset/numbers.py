"""Computes the quantities of a pass, from which scaling and updating follow (cloneset.md §4.3).

`Targets` is what the spec asks for, with percentages resolved; `Side` counts the existing pods, separately for the new
and the old revision; `Quantities` follows from both. Everything is plain arithmetic over a dozen integers, so that a
table test can check each formula against its worked examples.
"""

from collections.abc import Callable
from operator import add, sub
from typing import Self

import msgspec

from flotilla_common.api.kinds.cloneset.types import CloneSet, RollingUpdate
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import Reading, lenient_value, partition_value
from flotilla_common.control.plan import Frozen

DEFAULT_MAX_UNAVAILABLE = "20%"


class Targets(Frozen):
    """The numbers of the spec, in pods. `problems` lists unreadable fields and the values used instead."""

    replicas: int
    partition: int = 0
    max_surge: int = 0
    paused_surge: int = 0  # maxSurge that is suspended while the rollout is paused; pods that it allowed may stay
    max_unavailable: int = 0
    scale_limit: int | None = None  # scaleStrategy.maxUnavailable; None is unlimited
    on_delete: bool = False
    paused: bool = False
    problems: tuple[str, ...] = ()

    @property
    def expected_updated(self) -> int:
        """The number of pods that should be on the update revision (status.expectedUpdatedReplicas)."""
        return self.replicas - self.partition

    @property
    def ceiling(self) -> int:
        """The maximum number of pods."""
        return self.replicas + self.max_surge + self.paused_surge


class Tally(msgspec.Struct, frozen=True):
    """Numbers that are added up field by field."""

    def __add__(self, other: Self) -> Self:
        return self._combined(add, other)

    def __sub__(self, other: Self) -> Self:
        return self._combined(sub, other)

    def _combined(self, how: Callable[[int, int], int], other: Self) -> Self:
        return type(self)(*map(how, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class Side(Tally, frozen=True):
    """Active pods of one side of a rollout, the new or the old."""

    all: int = 0
    preparing_delete: int = 0
    deleting: int = 0  # specified for deletion and not PreparingDelete
    unavailable: int = 0  # neither PreparingDelete nor specified for deletion, and not available

    @property
    def active(self) -> int:
        """The pods of this side that are not on their way out."""
        return self.all - self.preparing_delete


class Counts(Tally, frozen=True):
    """Counts of the active pods that match the selector."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    updated_ready: int = 0
    updated_available: int = 0


class Quantities(Frozen):
    """The changes that a pass may make, in pods."""

    total: int
    unavailable: int
    use_surge: int
    scale_up: int
    scale_up_old: int
    create_now: int
    scale_down: int
    scale_down_old: int
    excess: int  # pods above replicas + maxSurge whose deletion has not begun
    delete_ready: int
    update: int  # negative: roll back to the current revision
    update_budget: int


def targets(cloneset: CloneSet) -> Targets:
    """Resolve the percentages of the spec; an unreadable field counts as 0 and is listed in `problems`."""
    spec, reading = cloneset.spec, Reading()

    def pods(field: str, value: IntOrString, *, round_up: bool) -> int:
        return reading.field(field, lambda: max(lenient_value(value, spec.replicas, round_up), 0), 0)

    limit = spec.scale_strategy.max_unavailable
    scale_limit = None if limit is None else pods("scaleStrategy.maxUnavailable", limit, round_up=True)
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    if spec.update_strategy.type == "OnDelete":
        allowed = lenient_value(DEFAULT_MAX_UNAVAILABLE, spec.replicas, round_up=False)
        return Targets(replicas=spec.replicas, max_unavailable=allowed, scale_limit=scale_limit, on_delete=True)
    allowed_surge = pods("maxSurge", rolling.max_surge or 0, round_up=True)
    surge = 0 if rolling.paused else allowed_surge
    wanted = DEFAULT_MAX_UNAVAILABLE if rolling.max_unavailable is None else rolling.max_unavailable
    return Targets(
        replicas=spec.replicas,
        partition=reading.field("partition", lambda: partition_value(rolling.partition, spec.replicas), 0),
        max_surge=surge,
        paused_surge=allowed_surge - surge,
        max_unavailable=pods("maxUnavailable", wanted, round_up=surge == 0),
        scale_limit=scale_limit,
        paused=rolling.paused,
        problems=reading.problems,
    )


def quantities(want: Targets, new: Side, old: Side, *, rollback: bool, exclude_preparing: bool) -> Quantities:
    """Compute the numbers of a pass.

    `rollback`: pods may go back to the current revision (gate CloneSetPartitionRollback, and the two revisions differ).
    `exclude_preparing`: pods in PreparingDelete do not count while scaling.
    """
    total = new.all + old.all
    deleting = new.deleting + old.deleting
    unavailable = new.preparing_delete + old.preparing_delete + new.unavailable + old.unavailable
    surplus_old = old.active - want.partition
    surplus_new = new.active - (want.replicas - want.partition)
    if not rollback:
        surplus_old, surplus_new = max(surplus_old, 0), min(surplus_new, 0)
    use_surge, use_surge_old = _surge(want, new.deleting, deleting, unavailable, surplus_old, surplus_new)
    counted, counted_old = total, old.all
    if exclude_preparing:
        counted -= new.preparing_delete + old.preparing_delete
        counted_old -= old.preparing_delete
    wanted, wanted_old = want.replicas + use_surge, want.partition + use_surge_old
    scale_up = max(wanted - counted, 0)
    scale_down = max(counted - deleting - wanted, 0)
    update = surplus_old if abs(surplus_old) <= abs(surplus_new) else -surplus_new
    return Quantities(
        total=total,
        unavailable=unavailable,
        use_surge=use_surge,
        scale_up=scale_up,
        scale_up_old=max(wanted_old - counted_old, 0),
        create_now=scale_up if want.scale_limit is None else min(scale_up, max(want.scale_limit - unavailable, 0)),
        scale_down=scale_down,
        scale_down_old=max(counted_old - old.deleting - wanted_old, 0),
        excess=max(new.active + old.active - deleting - want.ceiling, 0),
        delete_ready=(
            max(want.max_unavailable + total - want.replicas - unavailable, 0) if deleting or scale_down else 0
        ),
        update=update,
        update_budget=want.max_unavailable + total - want.replicas if update else 0,
    )


def _surge(
    want: Targets, deleting_new: int, deleting: int, unavailable: int, surplus_old: int, surplus_new: int
) -> tuple[int, int]:
    """Return (useful pods above replicas, how many of them on the old revision).

    As long as one side lacks pods, the update may use a pod above replicas for each pod to be replaced. Surge pods that
    exist already are in use: they count until the pods that they replace are gone, however many passes it takes to
    create all of them.
    """
    if want.max_surge == 0:
        return 0, 0
    for_deletion = min(max(unavailable + deleting - want.max_unavailable, 0), deleting)
    for_deletion_old = max(for_deletion - deleting_new, 0)
    for_update = for_update_old = 0
    if surplus_old * surplus_new < 0:
        for_update = max(surplus_old, surplus_new)
        for_update_old = for_update if surplus_old < 0 else 0  # pods that are rolled back are replaced by old ones
    useful, useful_old = (for_update, for_update_old) if for_update > for_deletion else (for_deletion, for_deletion_old)
    return min(want.max_surge, useful), min(want.max_surge, useful_old)
