"""Why a ResourceDistribution stands where it stands, for `flotilla explain`."""

from collections.abc import Iterable, Sequence

from flotilla_common.api.kinds.resourcedistribution.types import (
    CONFLICT,
    CREATE_FAILED,
    DELETE_FAILED,
    GET_FAILED,
    NO_NAMESPACE,
    UPDATE_FAILED,
)
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Action, Create, Delete, Patch
from flotilla_common.control.wording import named
from flotilla_sidecar.resourcedistribution.findings import Findings


def explain(found: Findings, draft: Draft) -> None:
    """Say what is done, what fails, and where everything is right."""
    _say(draft, "Creating", "a copy is made in", _namespaces(found.fresh, Create))
    _say(draft, "Updating", "the copy is made equal to the source in", _namespaces(found.fresh, Patch))
    _say(draft, "Removing", "the copy is deleted in", _namespaces(found.fresh, Delete))
    _failed(found, draft, "CannotRead", GET_FAILED, "it is not known what there is in")
    _failed(found, draft, "CreateFailed", CREATE_FAILED, "the copy cannot be made in")
    _failed(found, draft, "UpdateFailed", UPDATE_FAILED, "the copy cannot be made equal to the source in")
    _failed(found, draft, "DeleteFailed", DELETE_FAILED, "the copy cannot be deleted in")
    _say(draft, "Conflict", "an object of somebody else has the name, and is left alone, in", found.failures[CONFLICT])
    _say(
        draft,
        "NamespaceMissing",
        "waiting for namespaces that do not exist, or are being deleted:",
        found.failures[NO_NAMESPACE],
    )
    if not found.matched:
        draft.reason("NoTargets", "no namespace is chosen")
    _say(draft, "Distributed", "the copy is right in", found.right)


def _namespaces(actions: Sequence[Action], kind: type[Action]) -> list[str]:
    return [action.namespace for action in actions if isinstance(action, kind)]


def _failed(found: Findings, draft: Draft, code: str, failure: str, text: str) -> None:
    failed = found.failures[failure]
    if failed:
        namespaces = sorted(failed)
        draft.reason(code, f"{text} {named(namespaces)}: {failed[namespaces[-1]]}", namespaces)


def _say(draft: Draft, code: str, text: str, namespaces: Iterable[str]) -> None:
    if names := list(namespaces):
        draft.reason(code, f"{text} {named(names)}", names)
