"""The numbers of a SidecarSet, with percentages resolved (sidecarset.md §7.7)."""

from flotilla_common.api.kinds.sidecarset.types import SidecarSetUpdateStrategy
from flotilla_common.api.numbers import Reading, partition_value, strict_value
from flotilla_common.control.plan import Frozen


class Targets(Frozen):
    """What the spec asks for, in pods. `problems` names the fields that could not be read and the value used
    instead."""

    partition: int  # of the pods that could be updated, so many are kept as they are
    max_unavailable: int
    problems: tuple[str, ...] = ()


def targets(strategy: SidecarSetUpdateStrategy, matched: int) -> Targets:
    """Resolve the numbers for so many pods. What cannot be read is replaced by the careful choice.

    maxUnavailable is 1 when absent; a percentage is rounded up. 0 updates only what is not ready anyway."""
    reading, limit = Reading(), 1 if strategy.max_unavailable is None else strategy.max_unavailable
    kept = "all pods are kept as they are"
    return Targets(
        partition=reading.field("partition", lambda: partition_value(strategy.partition, matched), matched, kept),
        max_unavailable=reading.field("maxUnavailable", lambda: max(strict_value(limit, matched, round_up=True), 0), 1),
        problems=reading.problems,
    )
