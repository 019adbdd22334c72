"""The workloads whose pods can be spread: built-in ones, and kinds that administrators list (workloadspread.md §3).

The list is in the ConfigMap `kruise-configuration` of the system's namespace, which is read for each decision.
"""

from collections.abc import Collection, Mapping, Sequence, Set

import msgspec

from flotilla_common.api.documents import Json, JsonValue, mapping, mappings, sequence, text
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.meta import TargetRef
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, JOB, REPLICA_SET
from flotilla_common.api.whitelists import listed, lower

WHITE_LIST = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
"""The key in the ConfigMap."""

GroupKind = tuple[str, str]


def group_kind(target: TargetRef) -> GroupKind:
    """Return group and kind, which decide; the version does not."""
    return target.identity[:2]


SPREAD = (CLONE_SET, DEPLOYMENT, REPLICA_SET, JOB, BUILT_IN_STATEFUL_SET, STATEFUL_SET)
"""The kinds whose pods can be spread without configuration."""

CLONE_SETS, DEPLOYMENTS, REPLICA_SETS, JOBS, STATEFUL_SETS, ADVANCED_STATEFUL_SETS = (
    (one.group, one.kind) for one in SPREAD
)
BUILT_IN: Mapping[GroupKind, str] = {
    CLONE_SETS: "spec.replicas",
    DEPLOYMENTS: "spec.replicas",
    REPLICA_SETS: "spec.replicas",
    JOBS: "spec.parallelism",
    STATEFUL_SETS: "spec.replicas",
    ADVANCED_STATEFUL_SETS: "spec.replicas",
}
"""The path of the number of pods, by kind."""

NUMBERED = (STATEFUL_SETS, ADVANCED_STATEFUL_SETS)
"""Kinds whose pods are assigned by ordinal."""

COSTED = (CLONE_SETS, DEPLOYMENTS, REPLICA_SETS)
"""Kinds whose controllers respect the deletion cost of pods."""


class CustomWorkload(msgspec.Struct, frozen=True):
    """A kind that administrators list."""

    group: str
    version: str
    kind: str
    replicas_path: str = ""
    between: tuple[GroupKind, ...] = ()  # kinds of owners between it and its pods

    @property
    def group_kind(self) -> GroupKind:
        """Return group and kind."""
        return self.group, self.kind


def custom_workloads(configuration: Mapping[str, str]) -> list[CustomWorkload]:
    """Return the kinds in the data of the ConfigMap; empty without the key. Raises ValueError if unreadable."""
    return [_custom(entry) for entry in listed(configuration, WHITE_LIST)]


def _custom(entry: Json) -> CustomWorkload:
    between = [lower(one) for one in mappings(entry.get("subresources"))]
    return CustomWorkload(
        group=text(entry.get("group")),
        version=text(entry.get("version")),
        kind=text(entry.get("kind")),
        replicas_path=text(entry.get("replicaspath")),
        between=tuple((text(one.get("group")), text(one.get("kind"))) for one in between),
    )


def supported(target: GroupKind, custom: Collection[CustomWorkload]) -> bool:
    """Report whether pods of such a workload can be spread."""
    return target in BUILT_IN or target in {one.group_kind for one in custom}


def kinds_between(target: GroupKind, custom: Collection[CustomWorkload]) -> Set[GroupKind]:
    """Return the kinds of owners whose own owner is looked up on the way from a pod to the target.

    Below listed workloads this is every kind that creates pods, and every listed kind.
    """
    if target in BUILT_IN:
        return frozenset({REPLICA_SETS} if target == DEPLOYMENTS else ())
    named = (kind for one in custom for kind in (one.group_kind, *one.between))
    return frozenset({*BUILT_IN, *named})


def owners_of_pods(target: GroupKind, custom: Collection[CustomWorkload]) -> list[GroupKind]:
    """Return the kinds that the controllers of the target's pods may have."""
    if target == DEPLOYMENTS:
        return [REPLICA_SETS]
    return [target, *sorted(kinds_between(target, custom) - {target})]


def replicas_path(target: GroupKind, custom: Collection[CustomWorkload], paths: Sequence[str]) -> Sequence[str]:
    """Return the paths of the numbers of pods to add up: the target filter's `paths`, else that of the kind."""
    if paths:
        return paths
    found = BUILT_IN.get(target) or next((one.replicas_path for one in custom if one.group_kind == target), "")
    return [found] if found else []


def replicas_of(workload: Json, paths: Sequence[str]) -> int:
    """Return the sum of the numbers at these paths; an empty path counts 0. Raises ValueError if one is missing."""
    return sum(_number(workload, path) for path in paths if path)


def _number(workload: Json, path: str) -> int:
    value: JsonValue = workload
    for part in path.split("."):
        members = mapping(value)
        items = sequence(value)
        if part in members:
            value = members[part]
        elif part.isdecimal() and int(part) < len(items):
            value = items[int(part)]
        else:
            raise ValueError(f"the workload has no {path}")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{path} of the workload is not a number")
