"""Plans one pass over one ResourceDistribution (resourcedistribution.md §5).

Every target gets a copy that is equal to the source, no other namespace has one, and other owners' objects are never
changed.
"""

from datetime import datetime
from functools import partial
from typing import NamedTuple

from flotilla_common.api.kinds.resourcedistribution.types import (
    CREATE_FAILED,
    DELETE_FAILED,
    RESOURCE_DISTRIBUTION,
    UPDATE_FAILED,
    ResourceDistribution,
)
from flotilla_common.control.plan import Chain, Plan, Reason, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.writes import status_patch
from flotilla_sidecar.resourcedistribution.copies import (
    Content,
    change,
    content_of,
    creation,
    is_ours,
    removal,
    replacement,
    update,
)
from flotilla_sidecar.resourcedistribution.snapshot import DistributionSnapshot, NamespaceSelection, active_namespaces
from flotilla_sidecar.resourcedistribution.status import Results, explain, status_of


class _Desired(NamedTuple):
    """The desired content, and the namespaces that get it."""

    selection: NamespaceSelection
    content: Content


def plan(snapshot: DistributionSnapshot, now: datetime) -> Plan:
    """Plan the next step of one ResourceDistribution."""
    builder, desired = PlanBuilder(), _desired(snapshot.distribution)
    if isinstance(desired, Reason):
        return Plan(reasons=(desired,))
    if snapshot.copies is None and not snapshot.trouble:
        text = "reading the objects of this kind and name first"
        builder.reason(State.PROGRESSING, "ReadingCopies", text)
        return builder.plan()
    results = Results(snapshot, desired.selection.matched(snapshot.namespaces))
    if snapshot.trouble:
        results.unread(snapshot.trouble)
    else:
        _distribute(snapshot, desired.content, results, now)
        _clean(snapshot, results)
    return _planned(snapshot, results, builder, now)


def _desired(distribution: ResourceDistribution) -> _Desired | Reason:
    """Return the desired content and targets, or why nothing is done."""
    if distribution.metadata.deletion_timestamp is not None:
        return Reason(State.PROGRESSING, "Deleting", "it is being deleted; its copies are garbage-collected")
    try:
        content = content_of(distribution.source)
    except ValueError as fault:
        return Reason(State.STUCK, "InvalidResource", f"nothing can be distributed: {fault}")
    try:
        return _Desired(NamespaceSelection(distribution.spec.targets), content)
    except ValueError as fault:
        return Reason(State.STUCK, "InvalidSelector", f"namespaces cannot be selected: namespaceSelector: {fault}")


def _distribute(snapshot: DistributionSnapshot, content: Content, results: Results, now: datetime) -> None:
    """Give every target its copy (§5.3)."""
    distribution, copies = snapshot.distribution, snapshot.copies or {}
    reachable = set(active_namespaces(results.matched, snapshot.namespaces))
    for namespace in results.matched:
        copy = copies.get(namespace)
        if namespace not in reachable:
            results.missing(namespace)
        elif copy is None:
            results.write(CREATE_FAILED, namespace, partial(creation, distribution, namespace, now))
        elif not is_ours(copy, distribution):
            results.conflict(namespace)
        elif (differs := change(copy, content)).keys() & {"type"}:
            if copy.metadata.deletion_timestamp is not None:
                results.leaving.append(namespace)
            else:
                results.write(UPDATE_FAILED, namespace, partial(replacement, distribution, copy, now))
        elif differs:
            results.write(UPDATE_FAILED, namespace, partial(update, distribution, copy, differs, now))
        else:
            results.right.append(namespace)


def _clean(snapshot: DistributionSnapshot, results: Results) -> None:
    """Delete the copies of other namespaces (§5.5), except terminating ones and those in terminating namespaces."""
    distribution, copies = snapshot.distribution, snapshot.copies or {}
    for namespace in active_namespaces(sorted(copies.keys() - set(results.matched)), snapshot.namespaces):
        copy = copies[namespace]
        if is_ours(copy, distribution) and copy.metadata.deletion_timestamp is None:
            results.write(DELETE_FAILED, namespace, partial(removal, distribution, copy))


def _planned(snapshot: DistributionSnapshot, results: Results, builder: PlanBuilder, now: datetime) -> Plan:
    """Plan the writes, reasons and status.

    Writes that have not failed go first, so that lasting failures do not block other copies. The status is written at
    once by the pass that completes all writes, and at intervals while more are due.
    """
    due = [*results.fresh, *results.failing]
    more = len(due) > MAX_CHAINS_PER_PASS
    chains: list[Chain] = [write.chain() for write in due[:MAX_CHAINS_PER_PASS]]
    builder.stage(chains, stop_on_failure=False)
    explain(results, builder)
    distribution, desired, succeeded = snapshot.distribution, len(results.matched), len(results.right)
    status = status_of(distribution, desired, succeeded, results.failures, now)
    return builder.plan(
        status=status_patch(RESOURCE_DISTRIBUTION, distribution.metadata, distribution.status, status),
        urgent_status=not more,
        numbers={"desired": desired, "succeeded": succeeded, "failed": desired - succeeded},
    )
