"""Operations on running pods: ContainerRecreateRequest and EphemeralJob."""

from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.keys import RECREATE_NODE_NAME
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, JOB_UID_ENV, EphemeralJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE
from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import Api
from flotilla_common.model.ephemeral import has_done
from flotilla_common.workload.causes import PodContext
from flotilla_insight.views.kindview import KindView, Related, Summary


def recreate_request(raw: bytes) -> Summary:
    """Describe the containers with their progress and the IDs of the new ones."""
    request = msgspec.json.decode(raw, type=ContainerRecreateRequest)
    status, node = request.status, request.metadata.labels.get(RECREATE_NODE_NAME, "?")
    headline = f"{status.phase or 'not started'}: pod {request.spec.pod_name} on {node}"
    if status.message:
        headline += f", {status.message}"
    states = {state.name: state for state in status.container_recreate_states}
    seen = {container.name: container for container in status.container_status_snapshot}
    rows: list[tuple[str, ...]] = []
    for container in request.spec.containers:
        state, new = states.get(container.name), seen.get(container.name)
        rows.append(
            (
                container.name,
                state.phase if state else "-",
                ("yes" if state.is_killed else "no") if state else "-",
                short_id(new.container_id) if new else "-",
                ("yes" if new.ready else "no") if new else "-",
                state.message if state else "",
            )
        )
    return Summary(headline, ("CONTAINER", "STATE", "KILLED", "NEW ID", "READY", "MESSAGE"), rows)


def short_id(identity: str) -> str:
    """Return a container's ID without its runtime, as container tools shorten it."""
    return identity.rpartition("/")[2][:12]


async def _related(api: Api, raw: bytes, now: datetime) -> Related:
    """Read the pod whose containers are recreated, and its node."""
    found = msgspec.json.decode(raw, type=ContainerRecreateRequest)
    if found.status.completion_time is not None:
        return Related(basis=PodContext(now=now))
    node = found.metadata.labels.get(RECREATE_NODE_NAME, "")
    body = await found_or_none(api.get(POD, found.metadata.namespace, found.spec.pod_name))
    if body is None:
        return Related(nodes=[node] if node else (), basis=PodContext(now=now))
    pod = msgspec.json.decode(body, type=Pod)
    return Related(pods=[pod], nodes=[node or pod.spec.node_name], basis=PodContext(now=now))


def _recreate_progress(spec: Json, status: Json) -> str:
    phase = text(status.get("phase"))
    return "" if phase == "Completed" else f"pod {spec.get('podName')}, {phase or 'not started'}"


def ephemeral_job(raw: bytes) -> Summary:
    """Describe the containers, the pods that they go to, and the progress."""
    job = msgspec.json.decode(raw, type=EphemeralJob)
    status = job.status
    containers = ", ".join(sorted(job.spec.template.names)) or "no container"
    headline = f"{status.phase or 'not reconciled yet'}: {containers} for {_matched(job)}"
    counts = (status.match, status.running, status.succeeded, status.failed, status.waiting)
    return Summary(headline, ("MATCH", "RUNNING", "SUCCEEDED", "FAILED", "WAITING"), [tuple(map(str, counts))])


def _matched(job: EphemeralJob) -> str:
    try:
        selector = str(job.query) or "all labels"
    except ValueError:
        selector = "a selector that cannot be read"
    return f"pods of {selector}"


def _ephemeral_progress(_: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    match, done = status.get("match", 0), status.get("succeeded", 0) + status.get("failed", 0)
    return f"{done} of {match} pods done"


VIEWS = (
    KindView(
        resource=RECREATE_REQUEST,
        summary=recreate_request,
        related=_related,
        concerns=lambda stored, pod: member(stored, "spec").get("podName") == member(pod, "metadata").get("name"),
        plan_reads=(NODE_IMAGE,),  # they show whether the node's agent is alive
        progress=_recreate_progress,
    ),
    KindView(
        resource=EPHEMERAL_JOB,
        summary=ephemeral_job,
        has_ended_in=lambda stored, pod: has_done(pod, str(member(stored, "metadata").get("uid", ""))),
        progress=_ephemeral_progress,
        public_variables=frozenset({JOB_UID_ENV}),
    ),
)
