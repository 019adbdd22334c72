"""How ContainerRecreateRequests are served: what wakes the controller, and what is asked of the apiserver itself."""

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.containerrecreaterequest.kind import KIND
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.resources import POD
from flotilla_common.assembly import Assembly
from flotilla_common.control.controller import Controller, Key
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import RECREATE_REQUESTS, RecreateReport
from flotilla_common.node.serving import serve_reports
from flotilla_jobs.asking import Asking
from flotilla_jobs.containerrecreate.gather import POD_UID, Gatherer, open_pod_uid
from flotilla_jobs.containerrecreate.merge import absorbed
from flotilla_jobs.containerrecreate.plan import plan
from flotilla_jobs.containerrecreate.reports import Receiver
from flotilla_jobs.containerrecreate.snapshot import RecreateSnapshot
from flotilla_jobs.inbox import Inbox

CONTROLLER = "containerrecreaterequest-controller"
"""Its name in metrics and in the log (install.md §10)."""


async def serve(assembly: Assembly, *, pods: Table[Pod]) -> None:
    """Add the controller to the service and answer the reports of the nodes.

    Taking over needs a LIST of the requests only: every write on a pod holds for the version that was looked at.
    """
    context, mirror = assembly.context, assembly.mirror
    requests = mirror.add(RECREATE_REQUEST, ContainerRecreateRequest, {POD_UID: open_pod_uid})

    def again(namespace: str, name: str) -> None:
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

    def pod_is_there(key: Key, uid: str) -> bool:
        pod = pods.get(*key)
        return (pod is not None and pod.metadata.uid == uid) or mirror.is_undecodable(POD, uid)

    inbox = Inbox[ContainerRecreateRequest, RecreateReport](
        requests,
        absorbed=lambda request, report: absorbed(request, report, context.clock.now()),
        owns=assembly.shards.owns,
        read=read_request,
        again=again,
    )
    gatherer = Gatherer(
        requests=requests,
        pods=pods,
        report=inbox.latest,
        asking=Asking(read=read_pod, held=pod_is_there, clock=context.clock),
        unreadable=lambda uid: mirror.is_undecodable(POD, uid),
        again=again,
    )
    controller: Controller[RecreateSnapshot] = assembly.controller(
        RECREATE_REQUEST,
        name=CONTROLLER,
        gather=gatherer.gather,
        plan=plan,
        reread=reread,
        keys=gatherer.keys,
        workers=context.settings.workers_of(KIND),
    )
    requests.listen(lambda old, new: controller.enqueue_object(new or old))
    pods.listen(lambda old, new: controller.enqueue_all(gatherer.keys_of(old, new)))
    await serve_reports(context.bus, RECREATE_REQUESTS, RecreateReport, Receiver(inbox).receive)
