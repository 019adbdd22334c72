"""Which nodes a job is about (imagepull.md §5.4). Raises ValueError for selectors that admission would refuse."""

from collections.abc import Iterable, Sequence

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.mirror.table import Table


def is_active(job: ImagePullJob) -> bool:
    """The job is neither over nor on its way out."""
    return job.status.completion_time is None and job.metadata.deletion_timestamp is None


def selected(job: ImagePullJob, images: Table[NodeImage], pods: Iterable[Pod]) -> Sequence[NodeImage]:
    """The NodeImages of the job's nodes, by name. `pods`: those that `matching_pods` found, if it asks for pods."""
    selector = job.spec.selector
    if job.spec.pod_selector is not None:
        found = [images.get("", name) for name in sorted({pod.spec.node_name for pod in pods})]
    elif selector is not None and selector.names:
        found = [images.get("", name) for name in sorted(selector.names)]
    else:
        matches = job.node_query.matches
        chosen = (image for image in images if matches(image.metadata.labels))
        found = sorted(chosen, key=lambda image: image.metadata.name)
    return [image for image in found if image is not None and image.metadata.deletion_timestamp is None]


def matching_pods(job: ImagePullJob, pods: Iterable[Pod]) -> Sequence[Pod]:
    """The active, bound pods that the job asks for, of all pods of its namespace."""
    if job.spec.pod_selector is None:
        return ()
    matches = job.pod_query.matches
    return [pod for pod in pods if pod.active and pod.spec.node_name and matches(pod.metadata.labels)]


def concerns_node(job: ImagePullJob, image: NodeImage) -> bool:
    """Whether the node may be one of the job's. For jobs that ask for pods every node may."""
    selector = job.spec.selector
    if selector is not None and selector.names:
        return image.metadata.name in selector.names
    return job.node_query.matches(image.metadata.labels)
