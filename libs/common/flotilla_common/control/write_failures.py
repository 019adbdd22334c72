"""Reports refused writes in the next plan, in the same way for every kind.

The apiserver names the quota, webhook or policy itself, so its own text is shown, after the write that it refused, with
a code for the source of the refusal.
"""

import re
from collections.abc import Iterable

import msgspec

from flotilla_common.control.plan import Action, Outcome, OutcomeKind, Patch, Plan, Reason, State

_PATTERNS = (
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

FAILED = "WriteFailed"
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
    return next((code for code, pattern in _PATTERNS if re.search(pattern, text)), FAILED)


def write_failure_of(action: Action, outcome: Outcome) -> WriteFailure:
    """Return the refusal of a failed write."""
    part = f" ({action.subresource})" if isinstance(action, Patch) and action.subresource else ""
    what = f"{_VERBS[action.verb]} {action.resource.kind} {action.name}{part}"
    final = outcome.kind in (OutcomeKind.DENIED, OutcomeKind.INVALID)
    return WriteFailure(what, outcome.message, unknown=outcome.kind is OutcomeKind.UNKNOWN, final=final)


def with_write_failures(plan: Plan, refusals: Iterable[WriteFailure]) -> Plan:
    """Return the plan with a reason for each write refused before, unless the plan mentions it itself."""
    told = [reason.message for reason in plan.reasons] + [text for _, text in plan.errors]
    new = [one.reason for one in refusals if not any(one.text in text for text in told)]
    return msgspec.structs.replace(plan, reasons=(*new, *plan.reasons)) if new else plan
