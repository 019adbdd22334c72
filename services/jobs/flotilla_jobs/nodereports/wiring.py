"""How reports on containers and events are served."""

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.assembly import Assembly
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import EVENTS, PODS, EventReport, PodReport
from flotilla_common.node.serving import serve_reports
from flotilla_jobs.nodereports.containers import ContainerReports
from flotilla_jobs.nodereports.happenings import COMPONENTS, EventReports


async def serve(assembly: Assembly, *, pods: Table[Pod], images: Table[NodeImage]) -> None:
    """Answer both kinds of reports."""
    bus, owns = assembly.context.bus, assembly.shards.owns
    recorders = {component: assembly.recorder(component) for component in COMPONENTS}
    containers = ContainerReports(
        pods=pods,
        mirror=assembly.mirror,
        executor=assembly.executor(recorders["kruise-daemon-containermeta"]),
        owns=owns,
    )
    events = EventReports(pods=pods, images=images, recorders=recorders, owns=owns)
    await serve_reports(bus, PODS, PodReport, containers.receive)
    await serve_reports(bus, EVENTS, EventReport, events.receive)
