"""The CloneSet service on one page: what it watches, how it plans, what it writes."""

import msgspec

from flotilla_cloneset import metrics
from flotilla_cloneset.cloneset.plan import plan
from flotilla_cloneset.cloneset.snapshot import Options
from flotilla_cloneset.gather import OWNER, PULL_AHEAD, CloneSetTables, Gatherer, keys_of, owner_uids
from flotilla_cloneset.offline import CLONE_SETS, DEPENDENTS
from flotilla_cloneset.podreadiness import gather as podreadiness
from flotilla_cloneset.podreadiness.plan import plan as plan_readiness
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.cloneset.kind import KIND
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.resources import POD
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Key
from flotilla_common.control.offline import Planning
from flotilla_common.kube.installed import is_installed
from flotilla_common.mirror.table import Table
from flotilla_common.service import Context, Service

CLONESET_CONTROLLER, READINESS_CONTROLLER = "cloneset-controller", "pod-readiness-controller"
"""Names in events and metrics (install.md §10)."""

READINESS_WORKERS = 3
"""As the reference: one patch per pod is all there is to do."""


async def run(context: Context) -> None:
    """Serve CloneSets, and the readiness gate of other pods, until cancelled."""
    assembly = Assembly(context)
    served = context.settings.serves(CLONE_SET.kind)
    waiting = podreadiness.waiting_index(merging=(CLONE_SET,) if served else ())
    pods = assembly.mirror.add(POD, Pod, {OWNER: owner_uids, podreadiness.WAITING: waiting})
    _serve_pod_readiness(assembly, podreadiness.Gatherer(pods, waiting), pods)
    if served:
        await _serve_clonesets(assembly, pods)
        await assembly.run(resync=(CLONE_SET, *DEPENDENTS))
    else:
        why = f"off: {CLONE_SET.kind} is not in CUSTOM_RESOURCE_ENABLE"
        context.health.ready(CLONESET_CONTROLLER, ok=True, why=why)
        context.log.warning("controller does not run", controller=CLONESET_CONTROLLER, why=why)
        await assembly.run(resync=(POD,))


async def _serve_clonesets(assembly: Assembly, pods: Table[Pod]) -> None:
    context, mirror, settings = assembly.context, assembly.mirror, assembly.context.settings
    pull_ahead = context.gates.on(PULL_AHEAD) and await is_installed(context.api, IMAGE_PULL_JOB)
    tables = CloneSetTables.of(mirror, pods, pull_ahead=pull_ahead)
    options = Options(
        exclude_preparing_delete=settings.cloneset_scaling_exclude_preparing_delete,
        system_namespace=settings.namespace,
        drop_field_owners=not settings.keep_managed_fields,
        server_version=await context.server_version(),
    )
    gatherer = Gatherer(tables, context.gates, options)
    planning = Planning(gates=context.gates.changes(), options=msgspec.to_builtins(options))
    context.vitals["planning"] = lambda: {CLONE_SET.plural: planning}

    async def reread(key: Key) -> None:
        namespace, name = key
        await mirror.read(CLONE_SET, namespace, name)
        for resource in DEPENDENTS:
            await mirror.read_owned(resource, namespace)

    controller = assembly.controller(
        CLONE_SET,
        name=CLONESET_CONTROLLER,
        gather=gatherer.gather,
        plan=plan,
        reread=reread,
        keys=gatherer.keys,
        workers=settings.workers_of(KIND),
    )
    tables.clonesets.listen(lambda old, new: controller.enqueue_object(new or old))
    for table in (pods, tables.claims, tables.revisions):
        table.listen(lambda old, new: controller.enqueue_all(keys_of(old, new)))
    if tables.pull_jobs is not None:
        tables.pull_jobs.listen(lambda old, new: controller.enqueue_all(keys_of(old, new)))
    metrics.export_scale_expectation_leakage()


def _serve_pod_readiness(assembly: Assembly, gatherer: podreadiness.Gatherer, pods: Table[Pod]) -> None:
    """Lives context until there is a sidecar service (docs/adr/0005)."""

    async def reread(key: Key) -> None:
        await assembly.mirror.read(POD, *key)

    controller = assembly.controller(
        POD,
        name=READINESS_CONTROLLER,
        gather=gatherer.gather,
        plan=plan_readiness,
        reread=reread,
        keys=gatherer.keys,
        workers=READINESS_WORKERS,
    )

    def on_pod(_: Pod | None, new: Pod | None) -> None:
        if gatherer.concerns(new):
            controller.enqueue_object(new)

    pods.listen(on_pod)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return Service("cloneset", run, offline=(CLONE_SETS,))
