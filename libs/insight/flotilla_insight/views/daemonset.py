"""DaemonSet: its revisions, and the nodes with their pods."""

import re
from collections.abc import Iterator

import msgspec

from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet, RollingUpdate, ScaleStrategy
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.api.workload import Lifecycle
from flotilla_common.workload.placement import Placement
from flotilla_common.workload.revision_codec import belongs
from flotilla_insight.views.kindview import Coverage, KindView, UpdatePolicy
from flotilla_insight.views.progress import with_limits
from flotilla_insight.workload import Numbers, OrderKey, Workload

_DIGITS = re.compile(r"(\d+)")


def daemon_set(raw: bytes | msgspec.Raw) -> Workload:
    """Read a DaemonSet as a workload, whose numbers are nodes."""
    daemonset = msgspec.json.decode(raw, type=DaemonSet)
    spec, status = daemonset.spec, daemonset.status
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    newest = f"{daemonset.metadata.name}-{status.update_revision}" if status.update_revision else ""
    wanted = status.desired_number_scheduled
    return Workload(
        kind=DAEMON_SET.kind,
        metadata=daemonset.metadata,
        selector=spec.selector,
        lifecycle=spec.lifecycle or Lifecycle(),
        numbers=Numbers(
            desired=wanted,
            total=status.current_number_scheduled,
            ready=status.number_ready,
            available=status.number_available,
            updated=status.updated_number_scheduled,
            expected_updated=max(wanted - _partition(rolling, wanted), 0),
        ),
        observed_generation=status.observed_generation,
        update_revision=newest,
        current_revision="",
        partition=rolling.partition or 0,
        paused=rolling.paused,
        on_delete=spec.update_strategy.type == "OnDelete",
        min_ready_seconds=spec.min_ready_seconds,
        details=tuple(_details(daemonset, rolling)),
        belongs=belongs,
        order=by_number,
        by_node=True,
    )


def by_number(name: str) -> OrderKey:
    """Return a key that orders nodes by the numbers in their names: node-9 comes before node-10."""
    return tuple(int(part) if index % 2 else part for index, part in enumerate(_DIGITS.split(name)))


def _partition(rolling: RollingUpdate, nodes: int) -> int:
    """Return the partition in nodes; 0 if it cannot be read, which the service reports."""
    try:
        return strict_value(rolling.partition or 0, nodes, round_up=False)
    except ValueError:
        return 0


def _details(daemonset: DaemonSet, rolling: RollingUpdate) -> Iterator[str]:
    if strays := daemonset.status.number_misscheduled:
        yield f"{strays} {'nodes have' if strays > 1 else 'node has'} a pod that would not be made now"
    if rolling.selector is not None:
        chosen = Selector(rolling.selector.match_labels, tuple(rolling.selector.match_expressions))
        yield f"only nodes with {chosen} are updated"
    if (daemonset.spec.scale_strategy or ScaleStrategy()).partitioned_scaling:
        yield "the partition holds for new pods, too"


def _coverage(raw: bytes) -> Coverage:
    placement = Placement.of_daemons(msgspec.json.decode(raw, type=DaemonSet).spec.template)
    return Coverage(why_not=lambda node: placement.fit(node).why_not)


def _progress(spec: Json, status: Json) -> str:
    """Describe what is under way, in nodes, as its status counts."""
    names = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")
    wanted, there, updated, ready = (status.get(name, 0) for name in names)
    strays = status.get("numberMisscheduled", 0)
    said = [
        f"{updated} of {wanted} nodes updated" if updated < wanted else "",
        f"{there} of {wanted} nodes have their pod" if there < wanted else "",
        f"{ready} of {there} ready" if ready < there else "",
        f"{strays} misscheduled" if strays else "",
    ]
    return with_limits(said, member(spec, "updateStrategy"))


VIEWS = (
    KindView(
        resource=DAEMON_SET,
        workload=daemon_set,
        coverage=_coverage,
        update_policy=UpdatePolicy("rollingUpdateType", "Standard"),
        has_unknown_name=lambda made: made.kind == POD.kind,  # depends on earlier pods of the node
        progress=_progress,
        guards_removal=True,
    ),
)
