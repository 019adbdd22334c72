"""Termination of sidecars: only when the main containers are done, by one request per pod (container-extras.md §A4).

The phase of the pod is that of the main containers.
"""

from collections.abc import Iterator

from flotilla_common.api.core import ContainerStatus, Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import POD
from tests.simulation.oracles.view import Commit, View

PREFIX = "sidecar-termination-"
SIDECAR_ENV = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"


class SidecarTermination:
    """The rule for terminated sidecars: the pods, and the requests for them."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}  # by uid, as last seen
        self._asked: set[str] = set()

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == POD and commit.pod is not None:
            self._pods[version.uid] = commit.pod
            if commit.ours and commit.before is not None and commit.before.status.phase != commit.pod.status.phase:
                yield from _earned(commit.pod)
        elif version.resource == RECREATE_REQUEST and commit.ours and version.before is None:
            yield from self._asks(version.name)

    def _asks(self, name: str) -> Iterator[str]:
        uid = name.removeprefix(PREFIX)
        pod = self._pods.get(uid)
        if pod is None:
            yield "ends sidecars of a pod that never was"
            return
        if uid in self._asked:
            yield "is a second request for the same pod"
        self._asked.add(uid)
        if not all(status.state.terminated for status in _mains(pod)):
            yield f"ends sidecars of {pod.metadata.name}, which still works"


def _earned(pod: Pod) -> Iterator[str]:
    codes = [one.state.terminated.exit_code if one.state.terminated else None for one in _mains(pod)]
    earned = "Succeeded" if codes == [0] * len(codes) else "Failed"
    if None in codes or pod.status.phase != earned:
        yield f"says {pod.status.phase} of a pod whose main containers ended with {codes}"


def _mains(pod: Pod) -> list[ContainerStatus]:
    sidecars = {one.name for one in pod.spec.containers if any(env.name == SIDECAR_ENV for env in one.env)}
    return [status for status in pod.status.container_statuses if status.name not in sidecars]
