"""How ContainerRecreateRequests are served: tables, reports of the nodes, the controller."""

from collections.abc import Sequence

from flotilla_common.api.containerrecreaterequest import ContainerRecreateRequest
from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD, RECREATE_REQUEST, Resource
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Controller, Key
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import RECREATE_REQUESTS, RecreateReport
from flotilla_common.node.serving import serve_reports
from flotilla_jobs.containerrecreate.gather import POD_UID, Gatherer, open_pod_uid
from flotilla_jobs.containerrecreate.lookup import PodLookup
from flotilla_jobs.containerrecreate.plan import plan
from flotilla_jobs.containerrecreate.reports import Inbox
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot

CONTROLLER = "containerrecreaterequest-controller"
"""Its name in metrics and in the log (install.md §10)."""


async def serve(assembly: Assembly, pods: Table[Pod]) -> Sequence[Resource]:
    """Add the controller to the service and answer reports; returns what has to be read before the first plan.

    Pods are not among it: every write on a pod holds for the version that was looked at.
    """
    context, mirror = assembly.context, assembly.mirror
    requests = mirror.add(RECREATE_REQUEST, ContainerRecreateRequest, {POD_UID: open_pod_uid})

    def plan_again(namespace: str, name: str) -> None:
        controller.enqueue(namespace, name)

    async def read_request(namespace: str, name: str) -> object:
        return await mirror.read(RECREATE_REQUEST, namespace, name)

    async def read_pod(namespace: str, name: str) -> object:
        return await mirror.read(POD, namespace, name)

    async def reread(key: Key) -> None:
        request = requests.get(*key)
        await read_request(*key)
        if request is not None:
            await read_pod(key[0], request.spec.pod_name)

    def uid_of_pod(namespace: str, name: str) -> str:
        pod = pods.get(namespace, name)
        return "" if pod is None else pod.metadata.uid

    inbox = Inbox(
        requests=requests, owns=assembly.shards.owns, read=read_request, again=plan_again, clock=context.clock
    )
    lookup = PodLookup(read=read_pod, held=uid_of_pod, again=plan_again, clock=context.clock)
    gatherer = Gatherer(requests=requests, pods=pods, report=inbox.latest, surely_gone=lookup.surely_gone)
    controller: Controller[RecreateSnapshot] = assembly.controller(
        RECREATE_REQUEST,
        name=CONTROLLER,
        gather=gatherer.gather,
        plan=plan,
        reread=reread,
        keys=gatherer.keys,
        workers=context.settings.crr_workers,
    )

    def on_request(old: ContainerRecreateRequest | None, new: ContainerRecreateRequest | None) -> None:
        controller.enqueue_object(new or old)
        if new is None and old is not None:
            lookup.forget(old)

    requests.listen(on_request)
    pods.listen(lambda old, new: controller.enqueue_all(gatherer.keys_of(old, new)))
    await serve_reports(context.bus, RECREATE_REQUESTS, RecreateReport, inbox.receive)
    return (RECREATE_REQUEST,)
