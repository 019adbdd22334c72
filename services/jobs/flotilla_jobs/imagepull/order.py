"""In which order the nodes of a workload's job pull (imagepull.md §5.5): those first whose pods are updated first."""

from collections.abc import Mapping, Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.mirror.table import Table
from flotilla_common.workload.ordering import update_order


def node_order(job: ImagePullJob, pods: Sequence[Pod], clonesets: Table[CloneSet] | None) -> Mapping[str, int]:
    """The place of each node that has one: that of its first pod. Nodes of jobs without a workload have none."""
    owner = controller_of(job.metadata)
    if clonesets is None or owner is None or (group_of(owner.api_version), owner.kind) != (CLONE_SET.group, "CloneSet"):
        return {}
    cloneset = clonesets.get(job.metadata.namespace, owner.name)
    if cloneset is None:
        return {}
    rolling = cloneset.spec.update_strategy.rolling_update
    priority = rolling.priority_strategy if rolling is not None else None
    scatter = rolling.scatter_strategy if rolling is not None else ()
    names = dict.fromkeys(pod.spec.node_name for pod in update_order(pods, pods, priority, scatter))
    return {name: place for place, name in enumerate(names)}
