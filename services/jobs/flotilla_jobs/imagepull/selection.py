"""Selects the nodes of a job and the order in which they pull (imagepull.md §5.4, §5.5).

Raises ValueError for selectors that admission would refuse.
"""

from collections.abc import Iterable, Mapping, Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.api.meta import controller_of, group_of
from flotilla_common.mirror.table import Table
from flotilla_common.workload.ordering import update_order


def is_active(job: ImagePullJob) -> bool:
    """Report whether the job is neither completed nor being deleted."""
    return job.status.completion_time is None and job.metadata.deletion_timestamp is None


def selected(job: ImagePullJob, images: Table[NodeImage], pods: Iterable[Pod]) -> Sequence[NodeImage]:
    """Return the NodeImages of the job's nodes, by name.

    `pods` are the result of `matching_pods`; they count only if the job has a podSelector.
    """
    selector = job.spec.selector
    if job.spec.pod_selector is not None:
        candidates = [images.get("", name) for name in sorted({pod.spec.node_name for pod in pods})]
    elif selector is not None and selector.names:
        candidates = [images.get("", name) for name in sorted(selector.names)]
    else:
        matches = job.node_query.matches
        chosen = (image for image in images if matches(image.metadata.labels))
        candidates = sorted(chosen, key=lambda image: image.metadata.name)
    return [image for image in candidates if image is not None and image.metadata.deletion_timestamp is None]


def matching_pods(job: ImagePullJob, pods: Iterable[Pod]) -> Sequence[Pod]:
    """Return those of the namespace's pods that are active, bound and selected by the job's podSelector."""
    if job.spec.pod_selector is None:
        return ()
    matches = job.pod_query.matches
    return [pod for pod in pods if pod.active and pod.spec.node_name and matches(pod.metadata.labels)]


def concerns_node(job: ImagePullJob, image: NodeImage) -> bool:
    """Report whether the node may be one of the job's; for jobs with a podSelector, any node may."""
    selector = job.spec.selector
    if selector is not None and selector.names:
        return image.metadata.name in selector.names
    return job.node_query.matches(image.metadata.labels)


def node_order(job: ImagePullJob, pods: Sequence[Pod], clonesets: Table[CloneSet] | None) -> Mapping[str, int]:
    """Return the position of nodes: that of their first pod in the update order of the job's workload.

    Nodes of jobs without a workload have no position.
    """
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
