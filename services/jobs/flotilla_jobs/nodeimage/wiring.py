"""How NodeImages are served: what wakes the controller, and what is asked of the apiserver itself."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from flotilla_common.api.core import Node
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.kind import KIND
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.secrets import Secret
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Controller, Key
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import NODE_IMAGES, NodeImageReport
from flotilla_common.node.serving import serve_reports
from flotilla_jobs.asking import Asking
from flotilla_jobs.inbox import Inbox
from flotilla_jobs.nodeimage.gather import OWNER, Gatherer
from flotilla_jobs.nodeimage.plan import plan
from flotilla_jobs.nodeimage.reports import Receiver, absorbed
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot, Options

CONTROLLER = "nodeimage-controller"
"""Its name in events and metrics (install.md §10)."""


async def serve(
    assembly: Assembly,
    *,
    nodes: Table[Node],
    images: Table[NodeImage],
    jobs: Table[ImagePullJob],
    secrets: Table[Secret],
) -> None:
    """Add the controller to the service and answer the reports of the nodes."""
    settings = assembly.context.settings

    def again(namespace: str, name: str) -> None:
        controller.enqueue(namespace, name)

    async def reread(key: Key) -> None:
        await assembly.mirror.read(NODE_IMAGE, *key)

    inbox = _inbox(assembly, images, again)
    gatherer = Gatherer(
        nodes=nodes,
        images=images,
        jobs=jobs,
        secrets=secrets,
        secrets_namespace=settings.daemon_config_namespace,
        report=inbox.latest,
        asking=_asking(assembly, jobs),
        again=again,
        options=Options(creation_delay=timedelta(seconds=settings.nodeimage_creation_delay)),
    )
    controller: Controller[NodeImageSnapshot] = assembly.controller(
        NODE_IMAGE,
        name=CONTROLLER,
        gather=gatherer.gather,
        plan=plan,
        reread=reread,
        keys=gatherer.keys,
        workers=settings.workers_of(KIND),
    )
    _listen(controller, nodes, images, jobs)
    await serve_reports(assembly.context.bus, NODE_IMAGES, NodeImageReport, Receiver(inbox).receive)


def _inbox(
    assembly: Assembly, images: Table[NodeImage], again: Callable[[str, str], None]
) -> Inbox[NodeImage, NodeImageReport]:
    """What the nodes report, until their NodeImages say it."""
    read = partial(assembly.mirror.read, NODE_IMAGE)
    return Inbox(images, absorbed=absorbed, owns=assembly.shards.owns, read=read, again=again)


def _asking(assembly: Assembly, jobs: Table[ImagePullJob]) -> Asking:
    """Whether a job that owns tags is gone."""
    mirror = assembly.mirror

    def held(key: Key, uid: str) -> bool:
        job = jobs.get(*key)
        return (job is not None and job.metadata.uid == uid) or mirror.is_undecodable(IMAGE_PULL_JOB, uid)

    return Asking(read=partial(mirror.read, IMAGE_PULL_JOB), held=held, clock=assembly.context.clock)


def _listen(
    controller: Controller[NodeImageSnapshot],
    nodes: Table[Node],
    images: Table[NodeImage],
    jobs: Table[ImagePullJob],
) -> None:
    """What wakes the controller (imagepull.md §4.1)."""

    def on_node(old: Node | None, new: Node | None) -> None:
        if concerns(old, new):
            controller.enqueue_object(new or old)

    def on_job(old: ImagePullJob | None, new: ImagePullJob | None) -> None:
        if old is not None and (new is None or _over(new) != _over(old)):
            for image in images.by_index(OWNER, old.metadata.uid):
                controller.enqueue_object(image)

    nodes.listen(on_node)
    images.listen(lambda old, new: controller.enqueue_object(new or old))
    jobs.listen(on_job)


def concerns(old: Node | None, new: Node | None) -> bool:
    """A node's heartbeats say nothing to its NodeImage: only its life, its labels and its readiness do."""
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
