"""ContainerRecreateRequest in its hub and storage version, v1beta1 (containerrecreaterequest.md §2).

The spec is complete, not partial: an update is validated by comparing two specs, so every writable field must be here.
"""

from datetime import datetime

import msgspec

from flotilla_common.api.meta import Condition, IntOrString, Model, ObjectMeta
from flotilla_common.api.moments import Moment
from flotilla_common.api.resources import Resource

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
