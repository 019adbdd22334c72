"""Models a cluster as a whole: its objects, and everything that changes them besides our controllers."""

from datetime import datetime, timedelta

from flotilla_common.clock import ManualClock
from flotilla_common.model.agent import Agents
from flotilla_common.model.claims import Claims
from flotilla_common.model.garbage import Garbage
from flotilla_common.model.pods import Pods
from flotilla_common.model.store import Objects
from flotilla_common.model.workloads import Workloads

STEP = timedelta(seconds=1)
"""The duration of a step of the cluster: times are stored in whole seconds."""


class Cluster:
    """A cluster that advances in steps, between writes."""

    def __init__(self, now: datetime) -> None:
        self.clock = ManualClock(now.replace(microsecond=0))
        self.objects = Objects(self.clock)
        self.pods = Pods(self.objects)
        self._workloads = Workloads(self.objects)
        others = (Claims, Garbage, Agents)
        self._parts = (self._workloads, self.pods, *(part(self.objects) for part in others))

    @property
    def wake_at(self) -> datetime | None:
        """Return when something is due next, though nothing changes until then; None: never by itself."""
        return self._workloads.wake_at

    def step(self) -> bool:
        """Advance by a second and do what is due. Return False if nothing is; then no time passes either."""
        self.clock.time += STEP
        moved = [part.step() for part in self._parts]
        if not any(moved):
            self.clock.time -= STEP
        return any(moved)
