"""Explains the state of a ResourceDistribution, for `flotilla explain`."""

from collections.abc import Iterable

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONFLICT,
    CREATE_FAILED,
    DELETE_FAILED,
    GET_FAILED,
    NO_NAMESPACE,
    UPDATE_FAILED,
)
from flotilla_common.control.plan import State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named
from flotilla_sidecar.resourcedistribution.results import Results


def explain(found: Results, builder: PlanBuilder) -> None:
    """Add reasons for writes, failures and correct copies."""
    conflicts, missing = found.failures[CONFLICT], found.failures[NO_NAMESPACE]
    made, updated, removed = (_namespaces(found, kind) for kind in (CREATE_FAILED, UPDATE_FAILED, DELETE_FAILED))
    _reason_in(builder, State.PROGRESSING, "Creating", "creating the copy in", made)
    _reason_in(builder, State.PROGRESSING, "Updating", "updating the copy in", updated)
    _reason_in(
        builder, State.PROGRESSING, "Replacing", "recreating the copy, once the old one is gone, in", found.leaving
    )
    _reason_in(builder, State.PROGRESSING, "Removing", "deleting the copy in", removed)
    _reason_failed(builder, "CannotRead", "cannot read existing objects in", found.failures[GET_FAILED])
    _reason_failed(builder, "CreateFailed", "the copy cannot be created in", found.failures[CREATE_FAILED])
    _reason_failed(builder, "UpdateFailed", "the copy cannot be updated in", found.failures[UPDATE_FAILED])
    _reason_failed(builder, "DeleteFailed", "the copy cannot be deleted in", found.failures[DELETE_FAILED])
    _reason_in(
        builder, State.STUCK, "Conflict", "an object with another owner has the name, and is not changed, in", conflicts
    )
    _reason_in(builder, State.STUCK, "NamespaceMissing", "the namespace does not exist, or is being deleted:", missing)
    if not found.matched:
        builder.reason(State.DONE, "NoTargets", "no namespace is a target")
    _reason_in(builder, State.DONE, "Distributed", "the copy is up to date in", found.right)


def _namespaces(found: Results, kind: str) -> list[str]:
    return [one.namespace for one in found.fresh if one.failure == kind]


def _reason_failed(builder: PlanBuilder, code: str, text: str, failed: dict[str, str]) -> None:
    if failed:
        names = sorted(failed)
        builder.reason(State.STUCK, code, f"{text} {named(names)}: {failed[names[-1]]}", names)


def _reason_in(builder: PlanBuilder, state: State, code: str, text: str, namespaces: Iterable[str]) -> None:
    if names := list(namespaces):
        builder.reason(state, code, f"{text} {named(names)}", names)
