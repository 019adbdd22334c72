"""How many writes a pod costs us: two until it serves, three more for each update in place, and one for whatever else
is asked for."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from tests.simulation.apiserver.store import RESTORER
from tests.simulation.oracles.availability import images
from tests.simulation.oracles.node_history import is_begun
from tests.simulation.oracles.view import Commit, View

AGAIN = 3
"""How much of that has to be done again if etcd is restored."""


class WriteBudget:
    """What is left to each pod."""

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        del view
        uid = commit.version.uid
        if commit.version.writer == RESTORER:
            self._left[uid] += AGAIN
        if not commit.ours or commit.version.resource != POD:
            return
        self._left[uid] += _granted(commit) - 1
        if self._left[uid] < 0:
            yield "is one write more than the pod may cost"


def _granted(commit: Commit) -> int:
    """For how many writes the step is a reason: for its own, and for those that it makes necessary."""
    pod = commit.pod
    if commit.version.before is None:
        return 2  # and the first readiness gates
    before = msgspec.convert(commit.version.before, type=Pod)  # as the write met it
    if pod is None or commit.marked_deleted or before.state != pod.state or _owners(before) != _owners(pod):
        return 1
    if is_begun(pod) and not is_begun(before):
        return 2  # and the end of the update
    return int(images(before) != images(pod) or before.revision != pod.revision)


def _owners(pod: Pod) -> list[str]:
    return [reference.uid for reference in pod.metadata.owner_references]
