"""Collects the results of one pass by namespace, and derives status and reasons from them.

See resourcedistribution.md §6. The status has copy counts and six conditions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONDITIONS,
    CONFLICT,
    CREATE_FAILED,
    DELETE_FAILED,
    GET_FAILED,
    NO_NAMESPACE,
    UPDATE_FAILED,
    DistributionCondition,
    ResourceDistribution,
    ResourceDistributionStatus,
)
from flotilla_common.control.plan import Action, Chain, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named
from flotilla_sidecar.resourcedistribution.copies import phase
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot, active_namespaces

SUCCEEDED = "Succeeded"
"""The reason of a condition without a failure."""

Failures = Mapping[str, Mapping[str, str]]
"""By type of condition: the failed namespaces, and the message for each."""


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


def stored_failures(distribution: ResourceDistribution) -> Failures:
    """Return the failures that the stored status reports."""
    conditions = distribution.status.conditions
    return {condition.type: dict.fromkeys(condition.failed_namespaces, condition.reason) for condition in conditions}


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
        error = self._snapshot.failures.get(phase(failure, namespace))
        error = error or self._stored.get(failure, {}).get(namespace)
        if error:
            self.failures[failure][namespace] = error
        (self.failing if error else self.fresh).append(PlannedWrite(failure, namespace, make))


def status_of(
    distribution: ResourceDistribution, desired: int, succeeded: int, failures: Failures, now: datetime
) -> ResourceDistributionStatus:
    """Return the desired status."""
    before = distribution.status.conditions
    return ResourceDistributionStatus(
        desired=desired,
        succeeded=succeeded,
        failed=desired - succeeded,
        observed_generation=distribution.metadata.generation,
        conditions=[
            _condition(kind, failures.get(kind, {}), before[index] if index < len(before) else None, now)
            for index, kind in enumerate(CONDITIONS)
        ],
    )


def _condition(
    kind: str, failures: Mapping[str, str], before: DistributionCondition | None, now: datetime
) -> DistributionCondition:
    namespaces = sorted(failures)
    status = "True" if namespaces else "False"
    kept = before.last_transition_time if before is not None and before.status == status else None
    return DistributionCondition(
        type=kind,
        status=status,
        last_transition_time=kept or now.replace(microsecond=0),
        reason=failures[namespaces[-1]] if namespaces else SUCCEEDED,
        failed_namespaces=namespaces,
    )


def explain(results: Results, builder: PlanBuilder) -> None:
    """Add reasons for writes, failures and correct copies."""
    conflicts, missing = results.failures[CONFLICT], results.failures[NO_NAMESPACE]
    made, updated, removed = (_namespaces(results, kind) for kind in (CREATE_FAILED, UPDATE_FAILED, DELETE_FAILED))
    _reason_in(builder, State.PROGRESSING, "Creating", "creating the copy in", made)
    _reason_in(builder, State.PROGRESSING, "Updating", "updating the copy in", updated)
    _reason_in(
        builder, State.PROGRESSING, "Replacing", "recreating the copy, once the old one is gone, in", results.leaving
    )
    _reason_in(builder, State.PROGRESSING, "Removing", "deleting the copy in", removed)
    _reason_failed(builder, "CannotRead", "cannot read existing objects in", results.failures[GET_FAILED])
    _reason_failed(builder, "CreateFailed", "the copy cannot be created in", results.failures[CREATE_FAILED])
    _reason_failed(builder, "UpdateFailed", "the copy cannot be updated in", results.failures[UPDATE_FAILED])
    _reason_failed(builder, "DeleteFailed", "the copy cannot be deleted in", results.failures[DELETE_FAILED])
    _reason_in(
        builder, State.STUCK, "Conflict", "an object with another owner has the name, and is not changed, in", conflicts
    )
    _reason_in(builder, State.STUCK, "NamespaceMissing", "the namespace does not exist, or is being deleted:", missing)
    if not results.matched:
        builder.reason(State.DONE, "NoTargets", "no namespace is a target")
    _reason_in(builder, State.DONE, "Distributed", "the copy is up to date in", results.right)


def _namespaces(results: Results, kind: str) -> list[str]:
    return [write.namespace for write in results.fresh if write.failure == kind]


def _reason_failed(builder: PlanBuilder, code: str, text: str, failed: dict[str, str]) -> None:
    if failed:
        names = sorted(failed)
        builder.reason(State.STUCK, code, f"{text} {named(names)}: {failed[names[-1]]}", names)


def _reason_in(builder: PlanBuilder, state: State, code: str, text: str, namespaces: Iterable[str]) -> None:
    if names := list(namespaces):
        builder.reason(state, code, f"{text} {named(names)}", names)
