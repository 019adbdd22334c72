"""The ContainerRecreateRequest controller: what it watches and writes, and whose reports it takes."""

from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.api.resources import POD
from flotilla_common.control.controller import Key
from flotilla_common.control.inbox import StatusReports
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.wiring import Wiring
from flotilla_common.node.reports import RECREATE_REQUESTS, RecreateReport
from flotilla_common.node.serving import Sender
from flotilla_jobs.containerrecreate import merge
from flotilla_jobs.containerrecreate.gather import PODS, REQUESTS, Gatherer
from flotilla_jobs.containerrecreate.plan import plan


def problem(request: ContainerRecreateRequest, sender: Sender, report: RecreateReport) -> str:
    """Why a report does not count (containerrecreaterequest.md §5). An agent has no rights of its own: it may speak
    about a request that was admitted for its node, and about no other container than those of the request."""
    node = request.metadata.labels.get(RECREATE_NODE_NAME, "")
    return f"the request is for node {node}" if node != sender.node else merge.problem(report, request.spec)


async def read_pod(wiring: Wiring, key: Key) -> None:
    """The pod of the request. Raises ApiError, Unreachable."""
    request = wiring.table(REQUESTS).get(*key)
    if request is not None:
        await wiring.read(POD, key[0], request.spec.pod_name)


CONTROLLER = ControllerSpec(
    name="containerrecreaterequest-controller",
    primary=REQUESTS,
    watches=(PODS,),
    reports=StatusReports(kind=RECREATE_REQUESTS, body=RecreateReport, problem=problem, absorbed=merge.absorbed),
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
    also_read=read_pod,
)
