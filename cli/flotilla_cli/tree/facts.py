"""A pod of the tree, with what is known around it."""

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.workload.causes import Around, Cause, cause_of


class PodFacts(msgspec.Struct, frozen=True):
    """A pod, and what surrounds it."""

    pod: Pod
    around: Around = Around()

    @property
    def cause(self) -> Cause | None:
        """Why it does not serve; None if nothing is known against it."""
        return cause_of(self.pod, self.around)

    @property
    def reason(self) -> str:
        """The word that its kubelet or its containers have for their state; empty if there is none."""
        status = self.pod.status
        if status.reason:
            return status.reason
        for container in (*status.init_container_statuses, *status.container_statuses):
            found = container.state.waiting or container.state.terminated
            if found is not None and found.reason not in ("", "Completed"):
                return found.reason
        return ""


def read_pod(raw: bytes | msgspec.Raw) -> PodFacts:
    """Decode a pod as it came from the apiserver."""
    return PodFacts(msgspec.json.decode(raw, type=Pod))
