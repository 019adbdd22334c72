"""How many writes a pod costs us: two until it serves, three more for each update in place, and one for whatever else
is asked for."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from tests.simulation.apiserver.store import RESTORER
from tests.simulation.oracles.availability import images
from tests.simulation.oracles.scene import Scene, Step
from tests.simulation.oracles.stands import is_begun

AGAIN = 3
"""How much of that has to be done again if etcd is restored."""


class Thrift:
    """What is left to each pod."""

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()

    def __call__(self, scene: Scene, step: Step) -> Iterator[str]:
        del scene
        uid = step.version.uid
        if step.version.writer == RESTORER:
            self._left[uid] += AGAIN
        if not step.ours or step.version.resource != POD:
            return
        self._left[uid] += _granted(step) - 1
        if self._left[uid] < 0:
            yield "is one write more than the pod may cost"


def _granted(step: Step) -> int:
    """For how many writes the step is a reason: for its own, and for those that it makes necessary."""
    pod = step.pod
    if step.version.before is None:
        return 2  # and the first readiness gates
    before = msgspec.convert(step.version.before, type=Pod)  # as the write met it
    if pod is None or step.marked_deleted or before.state != pod.state or _owners(before) != _owners(pod):
        return 1
    if is_begun(pod) and not is_begun(before):
        return 2  # and the end of the update
    return int(images(before) != images(pod) or before.revision != pod.revision)


def _owners(pod: Pod) -> list[str]:
    return [reference.uid for reference in pod.metadata.owner_references]
