"""Declares the NodeImage controller: its watches, writes and triggers, and the reports that it accepts."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from flotilla_common.api.core import Node, Secret
from flotilla_common.api.documents import Json, mapping, mappings, member
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import BATCH, NODE_IMAGE, JobReference, NodeImage, tasks
from flotilla_common.api.resources import NODE, SECRET
from flotilla_common.control import spec
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.report_buffer import StatusReports
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Trigger, Watch
from flotilla_common.node.reports import NODE_IMAGES, NodeImageReport
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings
from flotilla_jobs.enabled import images_off
from flotilla_jobs.nodeimage.plan import plan
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot, Options
from flotilla_jobs.nodeimage.status import report_problem, reported

OWNER = "owner"
"""Index: NodeImages by the uids of the jobs that own their tags."""


def owner_uids(image: NodeImage) -> Iterable[str]:
    """Return the uids of all owners of all tags."""
    return {owner.uid for _, tag in tasks(image.spec.images) for owner in tag.owner_references}


def is_own_node(image: Json, node: Json) -> bool:
    """Report whether the NodeImage has the name of the node."""
    return member(image, "metadata").get("name") == member(node, "metadata").get("name")


def owns_a_tag(image: Json, job: Json) -> bool:
    """Report whether the job owns some tag of the NodeImage."""
    uid = member(job, "metadata").get("uid")
    tags = [tag for spec in member(image, "spec", "images").values() for tag in mappings(mapping(spec).get("tags"))]
    return any(owner.get("uid") == uid for tag in tags for owner in mappings(tag.get("ownerReferences")))


IMAGES = Watch(
    NODE_IMAGE,
    NodeImage,
    indexes={OWNER: owner_uids},
    writes=("create", "delete", "patch"),
    subresources=("status",),
)
NODES = Watch(NODE, Node, concerns=is_own_node)
JOBS = Watch(IMAGE_PULL_JOB, ImagePullJob, concerns=owns_a_tag)
COPIES = Watch(SECRET, Secret, private="daemon_config_namespace")


class Gatherer:
    """Builds the snapshot of one node. Changes of jobs and nodes requeue it (imagepull.md §4.1)."""

    def __init__(self, context: ControllerContext, options: Options) -> None:
        self._context = context
        self._nodes = context.table(NODES)
        self._images = context.table(IMAGES)
        self._jobs = context.table(JOBS)
        self._copies = context.table(COPIES)
        self._options = options

    def keys(self) -> list[Key]:
        """Return the keys of all nodes, and of all NodeImages without a node."""
        names = {node.metadata.name for node in self._nodes} | {image.metadata.name for image in self._images}
        return [("", name) for name in sorted(names)]

    def gather(self, key: Key, memory: Memory) -> NodeImageSnapshot | None:
        """Return the node and its NodeImage, or None if there is neither."""
        name = key[1]
        node, image = self._nodes.get("", name), self._images.get("", name)
        if image is None:
            return NodeImageSnapshot(name=name, node=node, options=self._options) if node is not None else None
        report = self._context.reported(image)
        owned = [owner for _, tag in tasks(image.spec.images) for owner in tag.owner_references]
        owners = {owner.uid: owner for owner in owned if owner.kind == IMAGE_PULL_JOB.kind}
        return NodeImageSnapshot(
            name=name,
            node=node,
            image=image,
            report=report.status if isinstance(report, NodeImageReport) else None,
            lost_owners=frozenset(uid for uid, owner in owners.items() if self._is_lost(name, owner)),
            running_owners=frozenset(uid for uid, owner in owners.items() if self._is_running(owner)),
            lost_secrets=frozenset(self._lost_secrets(image)),
            options=self._options,
        )

    def _owner_job(self, owner: JobReference) -> ImagePullJob | None:
        job = self._jobs.get(owner.namespace, owner.name)
        return job if job is not None and job.metadata.uid == owner.uid else None

    def _is_lost(self, name: str, owner: JobReference) -> bool:
        if self._owner_job(owner) is not None:
            return False
        if self._jobs.was_deleted(owner.uid):
            return True
        return self._context.confirm_deleted(JOBS, (owner.namespace, owner.name), owner.uid, ("", name))

    def _is_running(self, owner: JobReference) -> bool:
        job = self._owner_job(owner)
        return (
            job is not None
            and job.spec.completion_policy.ends
            and job.status.completion_time is None
            and job.metadata.deletion_timestamp is None
        )

    def _lost_secrets(self, image: NodeImage) -> Iterable[tuple[str, str]]:
        """Yield the missing secrets; those of other namespaces are ignored, as no node ever gets them."""
        for wanted in image.spec.images.values():
            for reference in wanted.pull_secrets:
                if reference.mode == BATCH or reference.namespace != self._options.secrets_namespace:
                    continue
                if self._copies.get(reference.namespace, reference.name) is None:
                    yield reference.namespace, reference.name

    def of_ended_job(self, old: ImagePullJob | None, new: ImagePullJob | None) -> Iterable[Key]:
        """Return the NodeImages with tags for a job that has ended or is gone."""
        if old is None or (new is not None and _over(new) == _over(old)):
            return ()
        return [("", image.metadata.name) for image in self._images.by_index(OWNER, old.metadata.uid)]


def _keys_of(old: Node | None, new: Node | None) -> list[Key]:
    node = new or old
    return [("", node.metadata.name)] if node is not None and concerns(old, new) else []


def concerns(old: Node | None, new: Node | None) -> bool:
    """Report whether the change concerns the NodeImage: existence, labels or readiness, but not heartbeats."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.labels != after.labels
        or before.deletion_timestamp != after.deletion_timestamp
        or (old.ready is None) != (new.ready is None)
    )


def _over(job: ImagePullJob) -> bool:
    return job.status.completion_time is not None


def options(settings: Settings, server_version: str) -> Options:
    """Return the settings that planning depends on."""
    return Options(
        creation_delay=timedelta(seconds=settings.nodeimage_creation_delay),
        secrets_namespace=settings.daemon_config_namespace,
    )


def own_image(sender: Sender) -> Key:
    """Return the key of the node's own NodeImage, which has its name."""
    return "", sender.node


def refusal(sender: Sender, report: NodeImageReport) -> str:
    """Return why the report is rejected, independent of the NodeImage (nodeagent.md §3.6), or ""."""
    if sender.name != sender.node:
        return f"node {sender.node} may not report for {sender.name}"
    return report_problem(report.status)


def absorbed(image: NodeImage, report: NodeImageReport, now: datetime) -> bool:
    """Report whether writing the report would change nothing."""
    return reported(image, report.status) == image.status


CONTROLLER = ControllerSpec(
    name="nodeimage-controller",
    primary=IMAGES,
    watches=(NODES, JOBS, COPIES),
    reports=StatusReports(kind=NODE_IMAGES, body=NodeImageReport, key=own_image, refusal=refusal, absorbed=absorbed),
    off=images_off,
    options=spec.Options(Options, options),
    build=Gatherer,
    triggers=lambda gatherer: [Trigger(NODES, _keys_of), Trigger(JOBS, gatherer.of_ended_job)],
    keys=Gatherer.keys,
    plan=plan,
)
