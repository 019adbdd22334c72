"""What one pass finds out about each namespace: right, to be written, or failed, and why."""

from collections.abc import Sequence

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONDITIONS,
    CONFLICT,
    GET_FAILED,
    NO_NAMESPACE,
)
from flotilla_common.control.plan import Action
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot
from flotilla_sidecar.resourcedistribution.status import stored_failure
from flotilla_sidecar.resourcedistribution.targets import living


class Findings:
    """Collected namespace by namespace, in the order of their names."""

    def __init__(self, snapshot: DistributionSnapshot, matched: Sequence[str]) -> None:
        """`matched`: the targets."""
        self._snapshot = snapshot
        self.matched = matched
        self.right: list[str] = []
        """Targets whose copy is there and equal."""
        self.fresh: list[Action] = []
        """Writes that nothing is known against."""
        self.failing: list[Action] = []
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

    def write(self, failure: str, action: Action) -> None:
        """A write is due. It counts as failed, with `failure` as its condition, if it was when it was last tried; a
        service that has just started knows that from the status only."""
        said = self._snapshot.failures.get(action.phase)
        said = said or stored_failure(self._snapshot.distribution, failure, action.namespace)
        if said:
            self.failures[failure][action.namespace] = said
            self.failing.append(action)
        else:
            self.fresh.append(action)
