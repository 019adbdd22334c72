"""From mirror tables to snapshots: a node, its NodeImage, and the jobs and secrets that the NodeImage names."""

from collections.abc import Callable, Iterable

from flotilla_common.api.core import Node
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import BATCH, JobReference, NodeImage
from flotilla_common.api.secrets import Secret
from flotilla_common.control.controller import Key, Memory
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import NodeImageReport
from flotilla_jobs.asking import Asking
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot, Options

OWNER = "owner"
"""Index: NodeImages by the uids of the jobs that their tags are for."""


def owner_uids(image: NodeImage) -> Iterable[str]:
    """The uids of all owners of all tags."""
    tags = [tag for spec in image.spec.images.values() for tag in spec.tags]
    return {owner.uid for tag in tags for owner in tag.owner_references}


class Gatherer:
    """Builds the snapshot of one node."""

    def __init__(
        self,
        *,
        nodes: Table[Node],
        images: Table[NodeImage],
        jobs: Table[ImagePullJob],
        secrets: Table[Secret],
        secrets_namespace: str,
        report: Callable[[NodeImage], NodeImageReport | None],
        asking: Asking,
        again: Callable[[str, str], None],
        options: Options,
    ) -> None:
        """`secrets` are those of `secrets_namespace`; `report` tells what the agent said last; `asking` knows which
        jobs are surely gone, and `again` plans a NodeImage when it has learnt more."""
        self._nodes = nodes
        self._images = images
        self._jobs = jobs
        self._secrets = secrets
        self._secrets_namespace = secrets_namespace
        self._report = report
        self._asking = asking
        self._again = again
        self._options = options

    def keys(self) -> list[Key]:
        """Every node, and every NodeImage without a node."""
        names = {node.metadata.name for node in self._nodes} | {image.metadata.name for image in self._images}
        return [("", name) for name in sorted(names)]

    def gather(self, key: Key, memory: Memory) -> NodeImageSnapshot | None:
        """The node and its NodeImage; None when there is neither."""
        name = key[1]
        node, image = self._nodes.get("", name), self._images.get("", name)
        if image is None:
            return NodeImageSnapshot(name=name, node=node, options=self._options) if node is not None else None
        report = self._report(image)
        owners = {owner.uid: owner for owner in self._owners(image)}
        return NodeImageSnapshot(
            name=name,
            node=node,
            image=image,
            report=report.status if report is not None else None,
            lost_owners=frozenset(uid for uid, owner in owners.items() if self._is_lost(name, owner)),
            running_owners=frozenset(uid for uid, owner in owners.items() if self._is_running(owner)),
            lost_secrets=frozenset(self._lost_secrets(image)),
            options=self._options,
        )

    def _owners(self, image: NodeImage) -> Iterable[JobReference]:
        for spec in image.spec.images.values():
            for tag in spec.tags:
                yield from (owner for owner in tag.owner_references if owner.kind == IMAGE_PULL_JOB.kind)

    def _held(self, owner: JobReference) -> ImagePullJob | None:
        job = self._jobs.get(owner.namespace, owner.name)
        return job if job is not None and job.metadata.uid == owner.uid else None

    def _is_lost(self, name: str, owner: JobReference) -> bool:
        if self._held(owner) is not None:
            return False
        if self._jobs.was_deleted(owner.uid):
            return True
        key = (owner.namespace, owner.name)
        return self._asking.surely_gone(key, owner.uid, ("", name), self._again)

    def _is_running(self, owner: JobReference) -> bool:
        job = self._held(owner)
        return (
            job is not None
            and job.spec.ends
            and job.status.completion_time is None
            and job.metadata.deletion_timestamp is None
        )

    def _lost_secrets(self, image: NodeImage) -> Iterable[tuple[str, str]]:
        """Those of other namespaces are nobody's business: no node ever gets them."""
        for spec in image.spec.images.values():
            for reference in spec.pull_secrets:
                if reference.mode == BATCH or reference.namespace != self._secrets_namespace:
                    continue
                if self._secrets.get(reference.namespace, reference.name) is None:
                    yield reference.namespace, reference.name
