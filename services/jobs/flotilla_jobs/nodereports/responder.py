"""Responders to node agents' reports (container metadata, events) and requests for pull secrets."""

from flotilla_common.api.core import Pod, Secret
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.resources import POD, SECRET
from flotilla_common.control.controller_context import ResponderContext
from flotilla_common.control.spec import Responder
from flotilla_common.control.watches import Watch
from flotilla_common.node.lookups import Lookups
from flotilla_common.node.reports import EVENTS, PODS, SECRETS, EventReport, PodReport, SecretsRequest
from flotilla_jobs.enabled import images_off, reports_off
from flotilla_jobs.nodereports.containers import ContainerReports
from flotilla_jobs.nodereports.events import COMPONENTS, EventReports
from flotilla_jobs.nodereports.pullsecrets import SecretServer

_PODS = Watch(POD, Pod, subresources=("status",), conditional=True)
_IMAGES = Watch(NODE_IMAGE, NodeImage)
_IMAGES_IF_ANY = Watch(NODE_IMAGE, NodeImage, optional=True)  # without pulls nothing waits for the kind
_COPIES = Watch(SECRET, Secret, private="daemon_config_namespace")


async def _answer_reports(answering: ResponderContext) -> None:
    pods, images = answering.table(_PODS), answering.table(_IMAGES_IF_ANY)
    recorders = {component: answering.recorder(component) for component in COMPONENTS}
    executor = answering.executor(recorders["kruise-daemon-containermeta"])
    containers = ContainerReports(pods=pods, lookups=Lookups(answering.read), executor=executor, fence=answering.fence)
    events = EventReports(pods=pods, images=images, recorders=recorders, owns=answering.owns)
    await answering.answer(PODS, PodReport, containers.receive)
    await answering.answer(EVENTS, EventReport, events.receive)


async def _hand_out_secrets(answering: ResponderContext) -> None:
    namespace = answering.settings.daemon_config_namespace
    server = SecretServer(answering.table(_IMAGES), answering.table(_COPIES), namespace, Lookups(answering.read))
    await answering.answer(SECRETS, SecretsRequest, server.receive, by_any_replica=True)


REPORTS = Responder(
    name="node-reports",
    watches=(_PODS, _IMAGES_IF_ANY),
    answers=(PODS, EVENTS),
    off=reports_off,
    build=_answer_reports,
)

PULL_SECRETS = Responder(
    name="pull-secrets", watches=(_IMAGES, _COPIES), answers=(SECRETS,), off=images_off, build=_hand_out_secrets
)
