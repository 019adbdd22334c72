"""Computes the status of a ResourceDistribution (resourcedistribution.md §6): copy counts, and six conditions."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONDITIONS,
    DistributionCondition,
    ResourceDistribution,
    ResourceDistributionStatus,
)

SUCCEEDED = "Succeeded"
"""The reason of a condition without a failure."""

Failures = Mapping[str, Mapping[str, str]]
"""By type of condition: the failed namespaces, and the message for each."""


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


def stored_failures(distribution: ResourceDistribution) -> Failures:
    """Return the failures that the stored status reports."""
    told = distribution.status.conditions
    return {condition.type: dict.fromkeys(condition.failed_namespaces, condition.reason) for condition in told}


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
