"""Makes the writes of a plan, and reports refused ones in the next plan.

Writes have preconditions on the uid, and on the version where the decision depends on it. Of a refusal the apiserver's
own text is shown, which names the quota, webhook or policy, after the refused write, with a code for its source.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, Unpack

import msgspec

from flotilla_common.api.documents import merge_patch
from flotilla_common.api.meta import Model, ObjectMeta, later
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import (
    Action,
    Chain,
    Create,
    Delete,
    Event,
    Frozen,
    Intent,
    Json,
    Outcome,
    OutcomeKind,
    Patch,
    PatchType,
    Plan,
    Reason,
    State,
)
from flotilla_common.control.planbuilder import Deadlines


class Reported(TypedDict, total=False):
    """Optional members of writes besides intent and cause: see `Effect`."""

    phase: str
    revision: str
    pods: tuple[str, ...]
    on_success: Event | None
    on_failure: Event | tuple[Event, ...] | None


class StatusPlan(Frozen):
    """The write of a status; `patch` is None when nothing that matters differs from the stored status."""

    patch: Patch | None = None
    urgent: bool = False


def create_of(
    resource: Resource,
    body: Json,
    intent: Intent,
    cause: str,
    *,
    tells_if_taken: bool = True,
    **reported: Unpack[Reported],
) -> Create:
    """Return the create of an object, with the name and namespace in its body."""
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
    return Create(
        resource=resource,
        namespace=namespace,
        name=name,
        intent=intent,
        cause=cause,
        body=body,
        tells_if_taken=tells_if_taken,
        **reported,
    )


def patch_of(
    resource: Resource,
    meta: ObjectMeta,
    intent: Intent,
    cause: str,
    *,
    body: Json,
    patch_type: PatchType = PatchType.MERGE,
    subresource: str = "",
    on_version: bool = False,
    **reported: Unpack[Reported],
) -> Patch:
    """Return the patch of an object; with `on_version` it fails if the object has changed since."""
    return Patch(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version if on_version else "",
        intent=intent,
        cause=cause,
        body=body,
        patch_type=patch_type,
        subresource=subresource,
        **reported,
    )


def delete_of(
    resource: Resource,
    meta: ObjectMeta,
    intent: Intent,
    cause: str,
    *,
    on_version: bool = False,
    **reported: Unpack[Reported],
) -> Delete:
    """Return the deletion of an object; with `on_version` it fails if the object has changed since."""
    return Delete(
        resource=resource,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version if on_version else "",
        intent=intent,
        cause=cause,
        **reported,
    )


def delete_finished(
    resource: Resource, meta: ObjectMeta, *, ttl: int | None, since: datetime, now: datetime, deadlines: Deadlines
) -> Chain:
    """Delete an object that finished at `since`, once `ttl` seconds have passed; without a TTL keep it."""
    if ttl is None or not deadlines.passed(later(since, max(ttl, 0)), now):
        return ()
    return (delete_of(resource, meta, Intent.CLEAN_UP, f"completed {ttl} seconds ago"),)


def status_patch(
    resource: Resource, meta: ObjectMeta, before: Model, after: Model, *always: str, on_version: bool = False
) -> Patch | None:
    """Return the write of a status, or None if it is the same as before.

    `always` are counts (with the same name in JSON) that it includes even if unchanged, because the first write needs
    them. With `on_version` it fails if the object has changed since.
    """
    if before == after:
        return None
    patch = merge_patch(msgspec.to_builtins(before), msgspec.to_builtins(after))
    return write_status(resource, meta, patch | {name: getattr(after, name) for name in always}, on_version=on_version)


def write_status(
    resource: Resource, meta: ObjectMeta, status: Json, *, on_version: bool = True, **reported: Unpack[Reported]
) -> Patch:
    """Return the write that merges these members into the status of the object."""
    return patch_of(
        resource,
        meta,
        Intent.STATUS,
        "status",
        body={"status": status},
        subresource="status",
        on_version=on_version,
        **reported,
    )


def write_finalizer(resource: Resource, meta: ObjectMeta, finalizer: str, *, present: bool) -> Patch:
    """Return the write that adds the finalizer to exactly this version of the object, or removes it."""
    others = [one for one in meta.finalizers if one != finalizer]
    body: Json = {"metadata": {"finalizers": [*others, finalizer] if present else others}}
    return patch_of(resource, meta, Intent.UPDATE, "finalizer", body=body, on_version=True)


_REFUSALS = (
    ("WebhookUnreachable", r"failed calling webhook "),
    ("WebhookDenied", r"admission webhook .* denied the request"),
    ("PolicyDenied", r"ValidatingAdmissionPolicy .* denied request"),
    ("QuotaExceeded", r"exceeded quota: |failed quota: "),
    ("PodSecurityViolated", r"violates PodSecurity "),
    ("ServiceAccountMissing", r"error looking up service account |serviceaccount \"[^\"]*\" not found"),
    ("RuntimeClassMissing", r"RuntimeClass \"[^\"]*\" not found"),
    ("PriorityClassMissing", r"no PriorityClass with name "),
    ("NamespaceTerminating", r"because it is being terminated"),
    ("LimitRangeViolated", r"(?:maximum|minimum) \S+ (?:usage|storage) per |limit to request ratio per "),
    ("Forbidden", r"^\S+(?: \"[^\"]*\")? is forbidden: User "),
    ("NameTaken", r"already exists$"),
    ("Invalid", r" is invalid: "),
)
"""Codes by a part of the refusal's text; the first match counts."""

WRITE_FAILED = "WriteFailed"
"""The code when no pattern matches."""

_VERBS = {"create": "creating", "patch": "updating", "delete": "deleting"}


class WriteFailure(msgspec.Struct, frozen=True):
    """One write that failed, or may have failed."""

    what: str  # creating Pod web-x2b4f
    text: str  # the apiserver's own words
    unknown: bool = False  # whether it took effect is unknown
    final: bool = False  # a retry is refused again, until the source of the refusal changes

    @property
    def reason(self) -> Reason:
        """The reason that a plan gives for it."""
        became = "has no known outcome" if self.unknown else "is refused"
        return Reason(State.STUCK, code_of(self.text), f"{self.what} {became}: {self.text}")


def code_of(text: str) -> str:
    """Return the code for a refusal in the apiserver's own words."""
    return next((code for code, pattern in _REFUSALS if re.search(pattern, text)), WRITE_FAILED)


def write_failure_of(action: Action, outcome: Outcome) -> WriteFailure:
    """Return the refusal of a failed write."""
    part = f" ({action.subresource})" if isinstance(action, Patch) and action.subresource else ""
    what = f"{_VERBS[action.verb]} {action.resource.kind} {action.name}{part}"
    final = outcome.kind in (OutcomeKind.DENIED, OutcomeKind.INVALID)
    return WriteFailure(what, outcome.message, unknown=outcome.kind is OutcomeKind.UNKNOWN, final=final)


def with_write_failures(plan: Plan, refusals: Iterable[WriteFailure]) -> Plan:
    """Return the plan with a reason for each write refused before, unless the plan mentions it itself."""
    texts = [reason.message for reason in plan.reasons] + [text for _, text in plan.errors]
    new = [one.reason for one in refusals if not any(one.text in text for text in texts)]
    return msgspec.structs.replace(plan, reasons=(*new, *plan.reasons)) if new else plan
