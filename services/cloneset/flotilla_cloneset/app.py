"""The CloneSet service on one page: what it watches, how it plans, what it writes."""

from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_cloneset.gather import ORPHANS, OWNER, Gatherer, keys_of, orphan_namespace, owner_uids
from flotilla_common.api.cloneset import CloneSet
from flotilla_common.api.core import ControllerRevision, Node, PersistentVolumeClaim, Pod
from flotilla_common.api.resources import CLAIM, CLONE_SET, NODE, POD, REVISION
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Key
from flotilla_common.service import Context, Service

DEPENDENTS = (POD, CLAIM, REVISION)

WORKERS = 16
"""CloneSets planned side by side. Workers are cheap, they wait for the apiserver most of the time; writes are limited
elsewhere, for all of them together."""


async def run(context: Context) -> None:
    """Serve CloneSets until cancelled."""
    assembly = Assembly(context, "cloneset-controller")
    mirror = assembly.mirror
    clonesets = mirror.add(CLONE_SET, CloneSet)
    pods = mirror.add(POD, Pod, {OWNER: owner_uids})
    claims = mirror.add(CLAIM, PersistentVolumeClaim, {OWNER: owner_uids})
    revisions = mirror.add(REVISION, ControllerRevision, {OWNER: owner_uids, ORPHANS: orphan_namespace})
    nodes = mirror.add(NODE, Node)
    settings = context.settings
    gatherer = Gatherer(
        clonesets=clonesets,
        pods=pods,
        claims=claims,
        revisions=revisions,
        nodes=nodes,
        gates=context.gates,
        options=Options(
            exclude_preparing_delete=settings.cloneset_scaling_exclude_preparing_delete,
            system_namespace=settings.namespace,
            server_version=await context.server_version(),
        ),
    )

    async def reread(key: Key) -> None:
        namespace, name = key
        await mirror.read(CLONE_SET, namespace, name)
        for resource in DEPENDENTS:
            await mirror.read_owned(resource, namespace)

    controller = assembly.controller(
        CLONE_SET, gather=gatherer.gather, plan=plan, reread=reread, keys=gatherer.keys, workers=WORKERS
    )
    clonesets.listen(lambda old, new: controller.enqueue_object(new or old))
    for table in (pods, claims, revisions):
        table.listen(lambda old, new: controller.enqueue_all(keys_of(old, new)))
    await assembly.run(take_over=(CLONE_SET, *DEPENDENTS))


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return Service("cloneset", run)
