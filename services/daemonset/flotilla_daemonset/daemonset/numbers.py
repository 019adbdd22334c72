"""Computes the numbers of a DaemonSet, in nodes (daemonset.md §2.1, §4.8 step B)."""

from flotilla_common.api.kinds.daemonset.types import DaemonSetSpec, RollingUpdate, ScaleStrategy
from flotilla_common.api.meta import IntOrString, LabelSelector, LabelSelectorRequirement
from flotilla_common.api.numbers import Reading, strict_value
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen

DEFAULT_BURST = 250
IN_PLACE = "InPlaceIfPossible"

NO_NODE = Selector({}, (LabelSelectorRequirement(key="none", operator="In"),))
"""A selector that matches nothing."""


class Targets(Frozen):
    """The spec, resolved. `problems` lists unreadable fields and the values used instead."""

    desired: int  # nodes that should have a pod
    max_unavailable: int
    max_surge: int  # above 0: a new pod starts beside the old one
    partition: int  # nodes that stay on old revisions
    burst: int  # creates of one pass; also deletes, and in-place updates
    min_ready_seconds: int
    on_delete: bool
    paused: bool
    in_place: bool
    partitioned_scaling: bool  # the partition also delays first pods
    nodes: Selector | None  # only pods on these nodes are updated
    problems: tuple[str, ...] = ()

    @property
    def surging(self) -> bool:
        """Report whether old pods stay until new pods beside them are available."""
        return self.max_surge > 0


def targets(spec: DaemonSetSpec, desired: int) -> Targets:
    """Resolve the spec for `desired` nodes. An unreadable field gets a cautious value."""
    reading = Reading()

    def nodes(field: str, value: IntOrString | None, *, unreadable: int, round_up: bool) -> int:
        wanted = 0 if value is None else value
        return reading.field(field, lambda: max(strict_value(wanted, desired, round_up), 0), unreadable)

    on_delete = spec.update_strategy.type == "OnDelete"
    rolling = (None if on_delete else spec.update_strategy.rolling_update) or RollingUpdate()
    max_unavailable = nodes("maxUnavailable", rolling.max_unavailable, unreadable=1, round_up=True)
    max_surge = nodes("maxSurge", rolling.max_surge, unreadable=0, round_up=True)
    # Admission does not validate it, so old objects may hold anything.
    burst = DEFAULT_BURST if spec.burst_replicas is None else spec.burst_replicas
    return Targets(
        desired=desired,
        max_unavailable=max_unavailable if max_unavailable or max_surge or not desired else 1,
        max_surge=max_surge,
        partition=nodes("partition", rolling.partition, unreadable=desired, round_up=False),
        burst=max(nodes("burstReplicas", burst, unreadable=DEFAULT_BURST, round_up=False), 1),
        min_ready_seconds=max(spec.min_ready_seconds, 0),
        on_delete=on_delete,
        paused=rolling.paused,
        in_place=rolling.rolling_update_type == IN_PLACE and not on_delete,
        partitioned_scaling=(spec.scale_strategy or ScaleStrategy()).partitioned_scaling and not on_delete,
        nodes=None if rolling.selector is None else _selector(rolling.selector, reading),
        problems=reading.problems,
    )


def _selector(selector: LabelSelector, reading: Reading) -> Selector:
    return reading.field("rollingUpdate.selector", lambda: Selector.compile(selector), NO_NODE, "no node is selected")
