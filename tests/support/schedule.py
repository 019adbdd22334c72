"""Assigns tests to the workers of pytest-xdist.

Most files of tests with real processes have a control plane of their own, and go to a worker whole; some files go
together, because they share one. Tests that share a plane with all others are spread over the workers, one by one. They
wait more than they compute, while kills and rollouts of hundreds of pods keep a core busy: so only some workers may run
whole files as long as there are single tests.
"""

from collections.abc import Callable

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


def file_of(nodeid: str) -> str:
    """Return the path of a test's file."""
    return nodeid.partition("::")[0]


class Units(LoadScopeScheduling):
    """A scheduler of units: `unit(nodeid)` names what a worker gets as a whole.

    A unit is the test itself, its file, or something larger. At most `whole` workers run more than single tests.
    """

    def __init__(
        self, config: pytest.Config, log: Producer, unit: Callable[[str], str] = file_of, whole: int = 1000
    ) -> None:
        super().__init__(config, log)
        self._unit = unit
        self._whole = whole

    def _split_scope(self, nodeid: str) -> str:
        return self._unit(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        busy = sum(self._at_a_file(other) for other in self.assigned_work if other is not node)
        single = next((unit for unit in self.workqueue if _single(unit)), None)
        if busy >= self._whole and single is not None:
            self.workqueue.move_to_end(single, last=False)
        super()._assign_work_unit(node)

    def _at_a_file(self, node: WorkerController) -> bool:
        units = self.assigned_work[node].items()
        return any(not _single(unit) and not all(done.values()) for unit, done in units)


def _single(unit: str) -> bool:
    return "::" in unit
