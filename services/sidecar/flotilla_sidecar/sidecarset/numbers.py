"""The numbers of a SidecarSet, with percentages resolved (sidecarset.md §7.7)."""

from flotilla_common.api.kinds.sidecarset.types import SidecarSetUpdateStrategy
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import partition_value, strict_value
from flotilla_common.control.plan import Frozen


class Targets(Frozen):
    """What the spec asks for, in pods. `problems` names the fields that could not be read and the value used
    instead."""

    partition: int  # of the pods that could be updated, so many are kept as they are
    max_unavailable: int
    problems: tuple[str, ...] = ()


def targets(strategy: SidecarSetUpdateStrategy, matched: int) -> Targets:
    """Resolve the numbers for so many pods. What cannot be read is replaced by the careful choice."""
    problems: list[str] = []
    return Targets(
        partition=_partition(strategy.partition, matched, problems),
        max_unavailable=_max_unavailable(strategy.max_unavailable, matched, problems),
        problems=tuple(problems),
    )


def _partition(value: IntOrString | None, matched: int, problems: list[str]) -> int:
    try:
        return partition_value(value, matched)
    except ValueError as error:
        problems.append(f"partition: {error}, all pods are kept as they are")
        return matched


def _max_unavailable(value: IntOrString | None, matched: int, problems: list[str]) -> int:
    """1 when absent; a percentage is rounded up. 0 updates only what is not ready anyway."""
    if value is None:
        return 1
    try:
        return max(strict_value(value, matched, round_up=True), 0)
    except ValueError as error:
        problems.append(f"maxUnavailable: {error}, 1 is used")
        return 1
