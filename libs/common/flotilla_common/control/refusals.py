"""Writes that the apiserver refused, and what the next plan says of them: the same for every kind.

The apiserver names quota, webhook or policy itself, so its own text is told, with what was to be written before it and
a code that says who refused.
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
"""Who refuses, by a part of the text. The first that fits counts."""

FAILED = "WriteFailed"
"""Where the text is none of these."""

_VERBS = {"create": "creating", "patch": "updating", "delete": "deleting"}


class Refusal(msgspec.Struct, frozen=True):
    """One write that did not happen, or not surely."""

    what: str  # creating Pod web-x2b4f
    text: str  # the apiserver's own words
    unknown: bool = False  # nobody knows whether it happened
    final: bool = False  # sent again, it is refused again, until somebody changes what refuses it

    @property
    def reason(self) -> Reason:
        """What a plan says of it."""
        became = "has no known outcome" if self.unknown else "is refused"
        return Reason(State.STUCK, code_of(self.text), f"{self.what} {became}: {self.text}")


def code_of(text: str) -> str:
    """Return the code for a refusal in the apiserver's own words."""
    return next((code for code, pattern in _PATTERNS if re.search(pattern, text)), FAILED)


def refusal_of(action: Action, outcome: Outcome) -> Refusal:
    """What is to be told of a write that failed."""
    part = f" ({action.subresource})" if isinstance(action, Patch) and action.subresource else ""
    what = f"{_VERBS[action.verb]} {action.resource.kind} {action.name}{part}"
    final = outcome.kind in (OutcomeKind.DENIED, OutcomeKind.INVALID)
    return Refusal(what, outcome.message, unknown=outcome.kind is OutcomeKind.UNKNOWN, final=final)


def with_refusals(plan: Plan, refusals: Iterable[Refusal]) -> Plan:
    """The plan with a reason for each write that was refused before, unless it speaks of that itself."""
    told = [reason.message for reason in plan.reasons] + [text for _, text in plan.errors]
    new = [one.reason for one in refusals if not any(one.text in text for text in told)]
    return msgspec.structs.replace(plan, reasons=(*new, *plan.reasons)) if new else plan
