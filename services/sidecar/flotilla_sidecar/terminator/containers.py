"""Finds the sidecars of a pod that must terminate, and how far its work is (container-extras.md §A1, §A2).

Only literal values of env entries count. Init containers are ignored.
"""

from collections.abc import Iterable

from flotilla_common.api.core import Container, ContainerStatus, Pod
from flotilla_common.api.keys import TERMINATE_ENV, TERMINATE_WITH_IMAGE_ENV
from flotilla_common.api.meta import struct_cached_property
from flotilla_common.control.plan import Frozen

IGNORE_EXIT_CODE_ENV = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"

_ENDING = ("Never", "OnFailure")


class Ending(Frozen, dict=True):
    """A pod, with the facts on which its end depends."""

    pod: Pod

    @struct_cached_property
    def sidecars(self) -> tuple[str, ...]:
        """Return the containers that must terminate with the others, by name."""
        return tuple(one.name for one in self.pod.spec.containers if _says(one, TERMINATE_ENV) or image_of(one))

    @property
    def interesting(self) -> bool:
        """Report whether the work is done, but a sidecar is not."""
        pod = self.pod
        if pod.metadata.deletion_timestamp is not None or pod.status.phase in ("", "Pending"):
            return False
        if pod.spec.restart_policy not in _ENDING or not self.sidecars or self.completed(self.sidecars):
            return False
        done = self.completed if pod.spec.restart_policy == "Never" else self.succeeded
        return done(self.mains)

    @property
    def mains(self) -> tuple[str, ...]:
        """The names of all other containers."""
        return tuple(container.name for container in self.pod.spec.containers if container.name not in self.sidecars)

    def completed(self, names: Iterable[str]) -> bool:
        """Report whether all of these have terminated; False while a container of the pod has no status."""
        return self._complete and all(_terminated(self._statuses.get(name)) for name in names)

    def succeeded(self, names: Iterable[str]) -> bool:
        """Report whether all of these have terminated with exit code 0."""
        return self._complete and all(_exit_code(self._statuses.get(name)) == 0 for name in names)

    def restarts(self, name: str) -> int:
        """Count the restarts of the container."""
        status = self._statuses.get(name)
        return 0 if status is None else status.restart_count

    def running(self, names: Iterable[str]) -> list[str]:
        """Return the names of containers that have not terminated."""
        return [name for name in names if not _terminated(self._statuses.get(name))]

    @property
    def killed(self) -> tuple[str, ...]:
        """The sidecars that a node's agent terminates, and whose exit code counts."""
        return tuple(one.name for one in self._terminated_by_agent if not _says(one, IGNORE_EXIT_CODE_ENV))

    @property
    def ignored(self) -> tuple[str, ...]:
        """The sidecars that it terminates, and whose exit code does not count."""
        return tuple(one.name for one in self._terminated_by_agent if _says(one, IGNORE_EXIT_CODE_ENV))

    @property
    def replaced(self) -> dict[str, str]:
        """The sidecars that end by getting another image, with that image."""
        return {container.name: image for container in self.pod.spec.containers if (image := image_of(container))}

    @property
    def _terminated_by_agent(self) -> list[Container]:
        return [container for container in self.pod.spec.containers if _says(container, TERMINATE_ENV)]

    @struct_cached_property
    def _statuses(self) -> dict[str, ContainerStatus]:
        return {status.name: status for status in self.pod.status.container_statuses}

    @property
    def _complete(self) -> bool:
        return len(self._statuses) == len(self.pod.spec.containers)


def image_of(container: Container) -> str:
    """Return the image that ends the sidecar; empty without one."""
    return _value(container, TERMINATE_WITH_IMAGE_ENV)


def _says(container: Container, name: str) -> bool:
    return _value(container, name).lower() == "true"


def _value(container: Container, name: str) -> str:
    """Return the value of the last entry of that name, as the container sees it."""
    return next((entry.value for entry in reversed(container.env) if entry.name == name), "")


def _terminated(status: ContainerStatus | None) -> bool:
    return status is not None and status.state.terminated is not None


def _exit_code(status: ContainerStatus | None) -> int | None:
    return None if status is None or status.state.terminated is None else status.state.terminated.exit_code
