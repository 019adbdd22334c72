"""Which tests a worker of pytest-xdist gets.

Most files of tests with real processes have a control plane of their own, and go to a worker whole. Tests that share
one are spread over all workers, one by one. They wait more than they compute, while kills and rollouts of hundreds of
pods keep a core busy: so only some workers may be at files of the first sort as long as there are tests of the second.
"""

from collections.abc import Callable

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class Spread(LoadScopeScheduling):
    """`spread(nodeid)` says whether a test may run anywhere; at most `whole` workers are at whole files."""

    def __init__(self, config: pytest.Config, log: Producer, spread: Callable[[str], bool], whole: int) -> None:
        super().__init__(config, log)
        self._spread = spread
        self._whole = whole

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if self._spread(nodeid) else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        busy = sum(self._at_a_file(other) for other in self.assigned_work if other is not node)
        single = next((scope for scope in self.workqueue if self._spread(scope)), None)
        if busy >= self._whole and single is not None:
            self.workqueue.move_to_end(single, last=False)
        super()._assign_work_unit(node)

    def _at_a_file(self, node: WorkerController) -> bool:
        units = self.assigned_work[node].items()
        return any(not self._spread(scope) and not all(done.values()) for scope, done in units)
