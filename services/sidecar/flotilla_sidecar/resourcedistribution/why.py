"""Why a ResourceDistribution stands where it stands, for `flotilla explain`."""

from collections.abc import Iterable

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONFLICT,
    CREATE_FAILED,
    DELETE_FAILED,
    GET_FAILED,
    NO_NAMESPACE,
    UPDATE_FAILED,
)
from flotilla_common.control.draft import Draft
from flotilla_common.control.wording import named
from flotilla_sidecar.resourcedistribution.findings import Findings


def explain(found: Findings, draft: Draft) -> None:
    """Say what is done, what fails, and where everything is right."""
    conflicts, missing = found.failures[CONFLICT], found.failures[NO_NAMESPACE]
    made, updated, removed = (_namespaces(found, kind) for kind in (CREATE_FAILED, UPDATE_FAILED, DELETE_FAILED))
    _reason_in(draft, "a copy is made in", made, code="Creating")
    _reason_in(draft, "the copy is made equal to the source in", updated, code="Updating")
    _reason_in(draft, "the copy is made anew when the old one is gone in", found.leaving, code="Replacing")
    _reason_in(draft, "the copy is deleted in", removed, code="Removing")
    _reason_failed(draft, "it is not known what there is in", found.failures[GET_FAILED], code="CannotRead")
    _reason_failed(draft, "the copy cannot be made in", found.failures[CREATE_FAILED], code="CreateFailed")
    _reason_failed(draft, "the copy cannot be updated in", found.failures[UPDATE_FAILED], code="UpdateFailed")
    _reason_failed(draft, "the copy cannot be deleted in", found.failures[DELETE_FAILED], code="DeleteFailed")
    _reason_in(draft, "an object of somebody else has the name, and is left alone, in", conflicts, code="Conflict")
    _reason_in(draft, "waiting for namespaces that do not exist or go:", missing, code="NamespaceMissing")
    if not found.matched:
        draft.reason("NoTargets", "no namespace is chosen")
    _reason_in(draft, "the copy is right in", found.right, code="Distributed")


def _namespaces(found: Findings, kind: str) -> list[str]:
    return [one.namespace for one in found.fresh if one.failure == kind]


def _reason_failed(draft: Draft, text: str, failed: dict[str, str], *, code: str) -> None:
    if failed:
        names = sorted(failed)
        draft.reason(code, f"{text} {named(names)}: {failed[names[-1]]}", names)


def _reason_in(draft: Draft, text: str, namespaces: Iterable[str], *, code: str) -> None:
    if names := list(namespaces):
        draft.reason(code, f"{text} {named(names)}", names)
