"""Writes per pod: two until it serves, three more for each in-place update, and one for any other request."""

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
"""How many of these writes are made again if etcd is restored."""


class WriteBudget:
    """The rule for writes: what is left of each pod's budget."""

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
    """Return how many writes the commit grants: its own, and those that it makes necessary."""
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
