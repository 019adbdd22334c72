"""ContainerRecreateRequest in its hub and storage version, v1beta1, and its conversion.

See containerrecreaterequest.md §2, §3. The spec is complete, not partial: an update is validated by comparing two
specs, so every writable field must be here. Two status fields are annotations in v1alpha1; everything else is the same.
The message of a True condition is lost.
"""

from datetime import UTC, datetime

import msgspec
import structlog

from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import RECREATE_SNAPSHOT, RECREATE_UNREADY
from flotilla_common.api.meta import Condition, IntOrString, Model, Moment, ObjectMeta, rfc3339
from flotilla_common.api.resources import Resource
from flotilla_common.api.versions import Conversion, annotate, only_beta

RECREATE_REQUEST = Resource("apps.kruise.io", "v1beta1", "containerrecreaterequests", "ContainerRecreateRequest")

FAIL, IGNORE = "Fail", "Ignore"
"""Failure policies: finish as soon as one container failed, or go on with the others."""

PENDING, RECREATING, COMPLETED = "Pending", "Recreating", "Completed"
"""Phases of a request. A new one has no phase until the agent sees it."""

SUCCEEDED, FAILED = "Succeeded", "Failed"
"""Final phases of a container."""

PRE_RECREATE_GRACE = "PreRecreateGrace"
"""The condition whose transition begins the unready grace period (§6.4)."""


class ExecAction(Model):
    command: list[str] = []


class HttpHeader(Model):
    name: str = ""
    value: str = ""


class HttpGetAction(Model):
    path: str = ""
    port: IntOrString = 0
    host: str = ""
    scheme: str = ""
    http_headers: list[HttpHeader] = []


class TcpSocketAction(Model):
    port: IntOrString = 0
    host: str = ""


class SleepAction(Model):
    seconds: int = 0


class PreStop(Model):
    """A container's preStop hook; ignored if it has no handler (§13)."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    sleep: SleepAction | None = None


class ContainerPort(Model):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class StatusContext(Model):
    """The container's identity when the request was admitted."""

    container_id: str = msgspec.field(default="", name="containerID")  # <runtime>://<id>
    restart_count: int = 0


class RecreateContainer(Model):
    """A container to restart; admission fills in everything but the name."""

    name: str = ""
    pre_stop: PreStop | None = None
    ports: list[ContainerPort] = []
    status_context: StatusContext | None = None


class RecreateStrategy(Model):
    failure_policy: str = FAIL
    ordered_recreate: bool = False
    force_recreate: bool = False
    termination_grace_period_seconds: int | None = None
    unready_grace_period_seconds: int | None = None
    min_started_seconds: int = 0


class ContainerRecreateRequestSpec(Model):
    pod_name: str = ""
    containers: list[RecreateContainer] = []
    strategy: RecreateStrategy = RecreateStrategy()
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None


class RecreateState(Model):
    """The progress of one container."""

    name: str = ""
    phase: str = ""
    message: str = ""
    is_killed: bool = False


class ContainerSnapshot(Model, omit_defaults=False):
    """The pod's status of a container that has been restarted (§6.3)."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    container_id: str = msgspec.field(default="", name="containerID")


class ContainerRecreateRequestStatus(Model):
    phase: str = ""
    completion_time: Moment | None = None
    message: str = ""
    container_recreate_states: list[RecreateState] = []
    container_status_snapshot: list[ContainerSnapshot] = []
    conditions: list[Condition] = []


class ContainerRecreateRequest(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: ContainerRecreateRequestSpec = ContainerRecreateRequestSpec()
    status: ContainerRecreateRequestStatus = ContainerRecreateRequestStatus()

    @property
    def completed(self) -> bool:
        """Report whether the request is completed."""
        return self.status.phase == COMPLETED

    @property
    def grace_since(self) -> datetime | None:
        """Return since when the pod has been not ready for the grace period; None if it is not."""
        for condition in self.status.conditions:
            if condition.type == PRE_RECREATE_GRACE and condition.status == "True":
                return condition.last_transition_time
        return None


GRACE_MESSAGE = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain"
"""The message of the condition PreRecreateGrace (§6.4)."""

_log = structlog.get_logger()


def strip(document: Json) -> None:
    """Remove the annotations that only v1alpha1 shows: v1beta1 has fields for them."""
    metadata = member(document, "metadata")
    annotations = mapping(metadata.get("annotations"))
    present = annotations.keys() & {RECREATE_SNAPSHOT, RECREATE_UNREADY}
    for key in present:
        del annotations[key]
    if present and not annotations:
        del metadata["annotations"]


def _to_beta(document: Json) -> None:
    annotations = member(document, "metadata", "annotations")
    snapshot = _snapshot(text(annotations.get(RECREATE_SNAPSHOT)))
    since = _moment(text(annotations.get(RECREATE_UNREADY)))
    strip(document)
    if snapshot is None and since is None:
        return
    status = document.setdefault("status", {"phase": ""})
    if snapshot is not None:
        status["containerStatusSnapshot"] = snapshot
    if since is not None:
        others = [one for one in mappings(status.get("conditions")) if one.get("type") != PRE_RECREATE_GRACE]
        status["conditions"] = [*others, grace_condition(since)]


def grace_condition(since: datetime) -> Json:
    """Return the condition with the time since which the pod has been kept not ready."""
    return {
        "type": PRE_RECREATE_GRACE,
        "status": "True",
        "reason": PRE_RECREATE_GRACE,
        "message": GRACE_MESSAGE,
        "lastTransitionTime": rfc3339(since),
    }


def _to_alpha(document: Json) -> None:
    strip(document)
    status = mapping(document.get("status"))
    snapshot = mappings(status.pop("containerStatusSnapshot", None))
    shown: dict[str, str] = {}
    if snapshot:
        shown[RECREATE_SNAPSHOT] = msgspec.json.encode([_entry(one) for one in snapshot]).decode()
    others = mappings(status.pop("conditions", None))
    for condition in [one for one in others if _holds_grace(one)]:
        shown[RECREATE_UNREADY] = text(condition.get("lastTransitionTime"))
        others.remove(condition)
    if others:
        status["conditions"] = others
    annotate(document, shown)


def _holds_grace(condition: Json) -> bool:
    return condition.get("type") == PRE_RECREATE_GRACE and condition.get("status") == "True"


def _entry(container: Json) -> Json:
    entry = {
        "name": text(container.get("name")),
        "ready": container.get("ready") is True,
        "restartCount": container.get("restartCount") or 0,
    }
    identity = text(container.get("containerID"))
    return entry | ({"containerID": identity} if identity else {})


def _snapshot(written: str) -> list[Json] | None:
    if not written:
        return None
    try:
        containers = read_json(written, list[ContainerSnapshot])
    except ValueError as error:
        _log.warning("annotation ignored", annotation=RECREATE_SNAPSHOT, error=str(error))
        return None
    return [_entry(msgspec.to_builtins(container)) for container in containers]


def _moment(written: str) -> datetime | None:
    if not written:
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        _log.warning("annotation ignored", annotation=RECREATE_UNREADY, error=str(error))
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_VERSIONS = Conversion("ContainerRecreateRequest", _to_beta, _to_alpha, only_beta("status.conditions"))
convert = _VERSIONS.convert
