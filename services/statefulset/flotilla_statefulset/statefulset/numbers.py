"""Computes the numbers of a StatefulSet, with percentages resolved (statefulset.md §2.1, §4.5, §4.8)."""

from flotilla_common.api.kinds.statefulset.types import RollingUpdate, StatefulSetSpec, reserved
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import Reading, strict_value
from flotilla_common.control.plan import Frozen
from flotilla_common.gates import Gates
from flotilla_statefulset.ordinals import Ordinals


class Targets(Frozen):
    """The numbers of the spec, in pods. `problems` lists unreadable fields and the values used instead."""

    ordinals: Ordinals
    partition: int  # pods that stay on old revisions: the lowest ranks, or any when the update is unordered
    max_unavailable: int
    scale_limit: int | None  # scaleStrategy.maxUnavailable; None: no limit
    min_ready_seconds: int
    ordered: bool  # OrderedReady: one pod after the other
    unordered_update: bool
    on_delete: bool
    paused: bool
    problems: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        """The desired number of pods."""
        return len(self.ordinals)

    @property
    def expected_updated(self) -> int:
        """The number of pods that should be on the update revision."""
        return max(self.replicas - self.partition, 0)


def targets(spec: StatefulSetSpec, gates: Gates) -> Targets:
    """Resolve the spec. An unreadable field gets a cautious value and is listed in `problems`."""
    reading = Reading()

    def at_least_one(field: str, value: IntOrString) -> int:
        """Return a limit of unavailable pods, rounded down, but at least 1: at 0 nothing would ever move (§9.1)."""
        return reading.field(field, lambda: max(strict_value(value, spec.replicas, round_up=False), 1), 1)

    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    start = spec.ordinals.start if spec.ordinals is not None and gates.on("StatefulSetStartOrdinal") else 0
    limit = spec.scale_strategy.max_unavailable if spec.scale_strategy is not None else None
    # One unreadable entry disables all reservations, as in the reference.
    left_out = reading.field("reserveOrdinals", lambda: reserved(spec.reserve_ordinals), [], "none is reserved")
    return Targets(
        ordinals=Ordinals.of(max(start, 0), spec.replicas, left_out),
        partition=max(rolling.partition, 0),
        max_unavailable=at_least_one("maxUnavailable", rolling.max_unavailable),
        scale_limit=None if limit is None else at_least_one("scaleStrategy.maxUnavailable", limit),
        min_ready_seconds=max(rolling.min_ready_seconds, 0),
        ordered=spec.pod_management_policy != "Parallel",
        unordered_update=rolling.unordered_update is not None,
        on_delete=spec.update_strategy.type == "OnDelete",
        paused=rolling.paused,
        problems=reading.problems,
    )
