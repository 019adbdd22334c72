"""What one pass finds out about each namespace: right, to be written, or failed, and why."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flotilla_common.api.kinds.resourcedistribution.types import CONDITIONS, CONFLICT, GET_FAILED, NO_NAMESPACE
from flotilla_common.control.plan import Action, Chain
from flotilla_sidecar.resourcedistribution.copies import phase
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot
from flotilla_sidecar.resourcedistribution.status import stored_failures
from flotilla_sidecar.resourcedistribution.targets import living


class Due(NamedTuple):
    """A write that is to be made."""

    failure: str
    """The condition that it belongs to if it fails."""
    namespace: str
    make: Callable[[], Action | Chain]

    def chain(self) -> Chain:
        """Return its writes, one after the other."""
        made = self.make()
        return made if isinstance(made, tuple) else (made,)


class Findings:
    """Collected namespace by namespace, in the order of their names."""

    def __init__(self, snapshot: DistributionSnapshot, matched: Sequence[str]) -> None:
        """`matched`: the targets."""
        self._snapshot = snapshot
        self._stored = stored_failures(snapshot.distribution)
        self.matched = matched
        self.right: list[str] = []
        """Targets whose copy is there and equal."""
        self.leaving: list[str] = []
        """Targets whose copy is on its way out, and is made anew when it is gone."""
        self.fresh: list[Due] = []
        """Writes that nothing is known against."""
        self.failing: list[Due] = []
        """Writes that failed when they were last tried."""
        self.failures: dict[str, dict[str, str]] = {kind: {} for kind in CONDITIONS}
        """By type of condition: namespaces, and what was said there."""

    def unread(self, why: str) -> None:
        """Nobody can say what there is, in any namespace."""
        everywhere = living(sorted(self._snapshot.namespaces), self._snapshot.namespaces)
        self.failures[GET_FAILED] = dict.fromkeys(everywhere, why)
        for namespace in self.matched:
            if namespace not in self.failures[GET_FAILED]:
                self.missing(namespace)

    def missing(self, namespace: str) -> None:
        """The target does not exist, or not for long."""
        self.failures[NO_NAMESPACE][namespace] = f"namespace {namespace} not found or is terminating"

    def conflict(self, namespace: str) -> None:
        """Somebody else's object has the name."""
        source = self._snapshot.distribution.source
        what = f"{source.resource.kind} {namespace}/{source.name}"
        self.failures[CONFLICT][namespace] = f"{what} is there already, and is not a copy of this ResourceDistribution"

    def write(self, failure: str, namespace: str, make: Callable[[], Action | Chain]) -> None:
        """A write is due. It counts as failed, with `failure` as its condition, if it was when it was last tried; a
        service that has just started knows that from the status only."""
        said = self._snapshot.failures.get(phase(failure, namespace))
        said = said or self._stored.get(failure, {}).get(namespace)
        if said:
            self.failures[failure][namespace] = said
        (self.failing if said else self.fresh).append(Due(failure, namespace, make))
