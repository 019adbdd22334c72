"""How far the containers of a job are in a pod (ephemeraljob.md §7.1). States have the words of phases."""

from collections.abc import Collection, Mapping

from flotilla_common.api.core import ContainerStatus
from flotilla_common.api.kinds.ephemeraljob.types import FAILED, RUNNING, SUCCEEDED, UNKNOWN, WAITING

CANNOT_RUN = "RunContainerError"
"""Why a container waits that could not be started: an ephemeral one is not tried again."""


def container_state(status: ContainerStatus) -> str:
    """The state of one container; Unknown while its kubelet has not said anything about it."""
    state = status.state
    if state.terminated is not None:
        if state.terminated.exit_code != 0:
            return FAILED
        return SUCCEEDED if state.terminated.finished_at is not None else UNKNOWN
    if state.running is not None:
        return RUNNING
    if state.waiting is None:
        return UNKNOWN
    return FAILED if state.waiting.reason == CANNOT_RUN else WAITING


def pod_state(containers: Mapping[str, str], names: Collection[str]) -> str:
    """The state of a pod from those of its containers, by name. `names`: all containers of the template."""
    found = set(containers.values())
    if FAILED in found:
        return FAILED
    if names and all(containers.get(name) == SUCCEEDED for name in names):
        return SUCCEEDED
    return next((state for state in (RUNNING, WAITING) if state in found), UNKNOWN)
