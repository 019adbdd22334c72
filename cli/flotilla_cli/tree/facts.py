"""The little about a pod that the tree shows and the services never read: why its containers wait or ended."""

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Model


class _Why(Model):
    reason: str = ""
    message: str = ""


class _State(Model):
    waiting: _Why | None = None
    terminated: _Why | None = None


class _ContainerStatus(Model):
    state: _State = _State()


class _Status(Model):
    reason: str = ""
    init_container_statuses: list[_ContainerStatus] = []
    container_statuses: list[_ContainerStatus] = []


class _Outline(Model):
    status: _Status = _Status()


class PodFacts(msgspec.Struct, frozen=True):
    """A pod, and the reason that its containers or the kubelet give for its state; empty if none."""

    pod: Pod
    reason: str = ""


def read_pod(raw: bytes | msgspec.Raw) -> PodFacts:
    """Decode a pod as it came from the apiserver."""
    status = msgspec.json.decode(raw, type=_Outline).status
    return PodFacts(msgspec.json.decode(raw, type=Pod), _reason(status))


def _reason(status: _Status) -> str:
    if status.reason:
        return status.reason
    for container in (*status.init_container_statuses, *status.container_statuses):
        found = container.state.waiting or container.state.terminated
        if found is not None and found.reason not in ("", "Completed"):
            return found.reason
    return ""
