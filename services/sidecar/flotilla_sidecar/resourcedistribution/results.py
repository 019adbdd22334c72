"""Collects the findings of one pass for each namespace: correct, to be written, or failed, and why."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flotilla_common.api.kinds.resourcedistribution.types import CONDITIONS, CONFLICT, GET_FAILED, NO_NAMESPACE
from flotilla_common.control.plan import Action, Chain
from flotilla_sidecar.resourcedistribution.copies import phase
from flotilla_sidecar.resourcedistribution.namespaces import active_namespaces
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot
from flotilla_sidecar.resourcedistribution.status import stored_failures


class PlannedWrite(NamedTuple):
    """A write that is due."""

    failure: str
    """The condition that it belongs to if it fails."""
    namespace: str
    make: Callable[[], Action | Chain]

    def chain(self) -> Chain:
        """Return its writes, one after the other."""
        made = self.make()
        return made if isinstance(made, tuple) else (made,)


class Results:
    """The findings by namespace, in the order of names."""

    def __init__(self, snapshot: DistributionSnapshot, matched: Sequence[str]) -> None:
        """Take the snapshot and the names of the targets, `matched`."""
        self._snapshot = snapshot
        self._stored = stored_failures(snapshot.distribution)
        self.matched = matched
        self.right: list[str] = []
        """Targets whose copy exists and is equal."""
        self.leaving: list[str] = []
        """Targets whose copy is terminating, and is recreated when it is gone."""
        self.fresh: list[PlannedWrite] = []
        """Writes without a known failure."""
        self.failing: list[PlannedWrite] = []
        """Writes that failed when they were last tried."""
        self.failures: dict[str, dict[str, str]] = {kind: {} for kind in CONDITIONS}
        """By type of condition: namespaces, and the message for each."""

    def unread(self, why: str) -> None:
        """Record that the objects of all namespaces cannot be read."""
        everywhere = active_namespaces(sorted(self._snapshot.namespaces), self._snapshot.namespaces)
        self.failures[GET_FAILED] = dict.fromkeys(everywhere, why)
        for namespace in self.matched:
            if namespace not in self.failures[GET_FAILED]:
                self.missing(namespace)

    def missing(self, namespace: str) -> None:
        """Record that the target does not exist, or is terminating."""
        self.failures[NO_NAMESPACE][namespace] = f"namespace {namespace} not found or is terminating"

    def conflict(self, namespace: str) -> None:
        """Record that another owner's object has the name."""
        source = self._snapshot.distribution.source
        what = f"{source.resource.kind} {namespace}/{source.name}"
        self.failures[CONFLICT][namespace] = f"{what} already exists, and is not a copy of this ResourceDistribution"

    def write(self, failure: str, namespace: str, make: Callable[[], Action | Chain]) -> None:
        """Record a write that is due.

        If it failed when it was last tried, it counts as failed with condition `failure`. A service that has just
        started has this only from the status.
        """
        said = self._snapshot.failures.get(phase(failure, namespace))
        said = said or self._stored.get(failure, {}).get(namespace)
        if said:
            self.failures[failure][namespace] = said
        (self.failing if said else self.fresh).append(PlannedWrite(failure, namespace, make))
