"""What the spec asks for, in nodes (daemonset.md §2.1, §4.8 step B)."""

from flotilla_common.api.kinds.daemonset.types import DaemonSetSpec, RollingUpdate, ScaleStrategy
from flotilla_common.api.meta import IntOrString, LabelSelectorRequirement
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen

DEFAULT_BURST = 250
IN_PLACE = "InPlaceIfPossible"

NO_NODE = Selector({}, (LabelSelectorRequirement(key="none", operator="In"),))
"""Matches nothing."""


class Targets(Frozen):
    """The spec, resolved. `problems` names the fields that could not be read and the value used instead."""

    desired: int  # nodes that are to have a pod
    max_unavailable: int
    max_surge: int  # above 0: a new pod starts beside the old one
    partition: int  # nodes that stay on old revisions
    burst: int  # creates, and deletes, and updates in place, of one pass
    min_ready_seconds: int
    on_delete: bool
    paused: bool
    in_place: bool
    partitioned_scaling: bool  # the partition keeps the first pods from being made, too
    nodes: Selector | None  # only pods on these are updated
    problems: tuple[str, ...] = ()

    @property
    def surging(self) -> bool:
        """Old pods stay until the new ones beside them are available."""
        return self.max_surge > 0


def targets(spec: DaemonSetSpec, desired: int) -> Targets:
    """Resolve the spec for so many nodes. What cannot be read is replaced by the careful choice."""
    problems: list[str] = []
    on_delete = spec.update_strategy.type == "OnDelete"
    rolling = (None if on_delete else spec.update_strategy.rolling_update) or RollingUpdate()
    read = _Reader(desired, problems)
    unavailable, surge = rolling.max_unavailable, rolling.max_surge
    max_unavailable = read.number("maxUnavailable", unavailable, absent=0, unreadable=1, round_up=True)
    max_surge = read.number("maxSurge", surge, absent=0, unreadable=0, round_up=True)
    return Targets(
        desired=desired,
        max_unavailable=max_unavailable if max_unavailable or max_surge or not desired else 1,
        max_surge=max_surge,
        partition=read.number("partition", rolling.partition, absent=0, unreadable=desired, round_up=False),
        burst=max(read.burst(spec.burst_replicas), 1),
        min_ready_seconds=max(spec.min_ready_seconds, 0),
        on_delete=on_delete,
        paused=rolling.paused,
        in_place=rolling.rolling_update_type == IN_PLACE and not on_delete,
        partitioned_scaling=(spec.scale_strategy or ScaleStrategy()).partitioned_scaling and not on_delete,
        nodes=_nodes(rolling, problems),
        problems=tuple(problems),
    )


class _Reader:
    """Reads numbers of nodes, and notes those that cannot be read."""

    def __init__(self, total: int, problems: list[str]) -> None:
        self._total = total
        self._problems = problems

    def number(self, field: str, value: IntOrString | None, *, absent: int, unreadable: int, round_up: bool) -> int:
        if value is None:
            return absent
        try:
            return max(strict_value(value, self._total, round_up), 0)
        except ValueError as error:
            self._problems.append(f"{field}: {error}, {unreadable} is used")
            return unreadable

    def burst(self, value: IntOrString | None) -> int:
        """Admission does not look at it, so that old objects may hold anything."""
        return self.number("burstReplicas", value, absent=DEFAULT_BURST, unreadable=DEFAULT_BURST, round_up=False)


def _nodes(rolling: RollingUpdate, problems: list[str]) -> Selector | None:
    if rolling.selector is None:
        return None
    try:
        return Selector.compile(rolling.selector)
    except ValueError as error:
        problems.append(f"rollingUpdate.selector: {error}, no node is selected")
        return NO_NODE
