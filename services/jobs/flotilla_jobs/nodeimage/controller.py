"""The NodeImage controller: what it watches and writes, what wakes it, and whose reports it takes."""

from datetime import datetime, timedelta

from flotilla_common.api.kinds.nodeimage.types import NodeImage
from flotilla_common.control import spec
from flotilla_common.control.controller import Key
from flotilla_common.control.inbox import StatusReports
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.node.reports import NODE_IMAGES, NodeImageReport
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings
from flotilla_jobs.nodeimage.gather import COPIES, IMAGES, JOBS, NODES, Gatherer
from flotilla_jobs.nodeimage.plan import plan
from flotilla_jobs.nodeimage.snapshot import Options
from flotilla_jobs.nodeimage.status import report_problem, reported
from flotilla_jobs.switches import images_off


def options(settings: Settings, server_version: str) -> Options:
    """The settings that decide about plans."""
    return Options(
        creation_delay=timedelta(seconds=settings.nodeimage_creation_delay),
        secrets_namespace=settings.daemon_config_namespace,
    )


def own_image(sender: Sender) -> Key:
    """A node speaks of its own NodeImage, which has its name."""
    return "", sender.node


def refusal(sender: Sender, report: NodeImageReport) -> str:
    """Why the report does not count, whatever the NodeImage is like (nodeagent.md §3.6)."""
    if sender.name != sender.node:
        return f"node {sender.node} may not speak for {sender.name}"
    return report_problem(report.status)


def absorbed(image: NodeImage, report: NodeImageReport, now: datetime) -> bool:
    """Writing the report would change nothing."""
    return reported(image, report.status) == image.status


CONTROLLER = ControllerSpec(
    name="nodeimage-controller",
    primary=IMAGES,
    watches=(NODES, JOBS, COPIES),
    reports=StatusReports(kind=NODE_IMAGES, body=NodeImageReport, key=own_image, refusal=refusal, absorbed=absorbed),
    off=images_off,
    options=spec.Options(Options, options),
    build=Gatherer,
    keys=Gatherer.keys,
    plan=plan,
)
