"""The jobs service on one page: what it watches, how it plans, what it writes."""

import asyncio

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB, ImageListPullJob
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB, ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import NODE, POD, SECRET, Resource
from flotilla_common.api.secrets import Secret
from flotilla_common.assembly import Assembly
from flotilla_common.mirror.table import Indexer, Table
from flotilla_common.node.reports import SECRETS, SecretsRequest
from flotilla_common.node.serving import serve_reports
from flotilla_common.service import Context, Service
from flotilla_jobs.containerrecreate import wiring as containerrecreate
from flotilla_jobs.imagelistpull import wiring as imagelistpull
from flotilla_jobs.imagepull import wiring as imagepull
from flotilla_jobs.imagepull.gather import LINKS, NAMESPACE, PullTables, links, namespace_of
from flotilla_jobs.imagepull.triggers import INDEXES
from flotilla_jobs.nodeimage import wiring as nodeimage
from flotilla_jobs.nodeimage.gather import OWNER, owner_uids
from flotilla_jobs.nodereports import wiring as nodereports
from flotilla_jobs.pullsecrets import SecretServer


async def run(context: Context) -> None:
    """Serve image pulls, container restarts and agents' reports on pods until cancelled. All of them need an agent on
    the nodes."""
    pulls, recreates = _serves_images(context), context.settings.serves(RECREATE_REQUEST.kind)
    if not context.gates.on("KruiseDaemon") or not (pulls or recreates or context.gates.on("DaemonWatchingPod")):
        await _idle(context)
    assembly = Assembly(context)
    pods = assembly.mirror.add(POD, Pod, {NAMESPACE: namespace_of})
    indexes: dict[str, Indexer[NodeImage]] = {OWNER: owner_uids}
    # Without pulls there may be no such kind on the cluster; nobody may wait for it then.
    images = assembly.mirror.add(NODE_IMAGE, NodeImage, indexes) if pulls else Table[NodeImage](indexes)
    resync: list[Resource] = []
    async with asyncio.TaskGroup() as group:
        if pulls:
            resync += await _serve_images(assembly, pods, images, group)
        if recreates:
            await containerrecreate.serve(assembly, pods=pods)
            resync.append(RECREATE_REQUEST)
        await nodereports.serve(assembly, pods=pods, images=images)
        group.create_task(assembly.run(resync))


async def _serve_images(
    assembly: Assembly, pods: Table[Pod], images: Table[NodeImage], group: asyncio.TaskGroup
) -> list[Resource]:
    """NodeImages, and the jobs that fill them where their gate is on; returns what to list before the first plan."""
    context, mirror = assembly.context, assembly.mirror
    namespace = context.settings.daemon_config_namespace
    jobs = mirror.add(IMAGE_PULL_JOB, ImagePullJob, INDEXES)
    secrets = mirror.add_private(SECRET, Secret, namespace, {LINKS: links})
    nodes = mirror.add(NODE, Node)
    await nodeimage.serve(assembly, nodes=nodes, images=images, jobs=jobs, secrets=secrets)
    server = SecretServer(images, secrets, namespace, mirror.read)
    await serve_reports(context.bus, SECRETS, SecretsRequest, server.receive, queue=context.service)
    if context.gates.on("ImagePullJobGate"):
        lists = mirror.add(IMAGE_LIST_PULL_JOB, ImageListPullJob)
        clonesets = mirror.add(CLONE_SET, CloneSet) if _pulls_ahead(context) else None
        tables = PullTables(jobs=jobs, lists=lists, images=images, pods=pods, secrets=secrets, clonesets=clonesets)
        group.create_task(imagepull.serve(assembly, tables))
        imagelistpull.serve(assembly, lists, jobs)
        return [NODE_IMAGE, IMAGE_PULL_JOB, SECRET, IMAGE_LIST_PULL_JOB]
    return [NODE_IMAGE, IMAGE_PULL_JOB]


def _serves_images(context: Context) -> bool:
    """Some kind that is served needs images on nodes."""
    kinds = (NODE_IMAGE, IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB)
    return any(context.settings.serves(resource.kind) for resource in kinds) or _pulls_ahead(context)


def _pulls_ahead(context: Context) -> bool:
    """CloneSets have images pulled before they update pods in place."""
    return context.gates.on("PreDownloadImageForInPlaceUpdate") and context.settings.serves(CLONE_SET.kind)


async def _idle(context: Context) -> None:
    """There is nothing to do until the process is started with other settings."""
    context.log.warning("no controller runs", why="off: gate KruiseDaemon, or all kinds and gate DaemonWatchingPod")
    context.started()
    await asyncio.Event().wait()


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return Service("jobs", run)
