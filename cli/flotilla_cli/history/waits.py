"""How long an object waited, and for what: a reason that is given again and again is one wait."""

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from flotilla_cli.tree.why import Why
from flotilla_common.control.plan import Reason

DONE = "Complete"
"""How the codes of reasons begin that say that nothing is left to do."""

WORK = ("Updating", "ScalingUp", "Deleting", DONE)
"""How the codes of reasons begin that tell what a pass did, which its writes tell as well."""


class Wait(msgspec.Struct, kw_only=True):
    """A reason: since when, how long in all, how many times it came up, and how it read last."""

    code: str
    message: str
    began: datetime
    seconds: float = 0
    times: int = 0
    bad: bool = False  # something that could not be done, instead of something to wait for


def waits(decisions: Sequence[Why], until: datetime) -> list[Wait]:
    """All reasons to wait, in the order in which they came up. A decision holds until the next one, the last one
    `until` the end."""
    found: dict[str, Wait] = {}
    held: set[str] = set()  # what the decision before gave, as keys of `found`
    moments = [one.at for one in decisions if one.at is not None]
    for one, end in zip(decisions, [*moments[1:], until], strict=False):
        began = one.at or until
        now: set[str] = set()
        for code, message, gist, bad in _given(one):
            wait = found.setdefault(gist, Wait(code=code, message=message, began=began, bad=bad))
            wait.message = message
            wait.seconds += max((end - began).total_seconds(), 0)
            wait.times += gist not in held
            now.add(gist)
        held = now
    return list(found.values())


def _given(one: Why) -> list[tuple[str, str, str, bool]]:
    """Code, message, what makes it the same wait, and whether something could not be done."""
    reasons = [
        (reason.code, reason.message, f"{reason.code} {_gist(reason)}", False)
        for reason in one.reasons
        if not reason.code.startswith(WORK)
    ]
    failed = [(f"failed {error.phase}".rstrip(), error.message) for error in one.errors]
    return reasons + [(code, message, code, True) for code, message in failed]


def _gist(reason: Reason) -> str:
    """The message without the pods that it names, and without numbers: they change while the wait goes on."""
    names = "|".join(map(re.escape, sorted(reason.objects, key=len, reverse=True)))
    words = re.sub(names, "", reason.message) if names else reason.message
    return re.sub(r"\band \d+ more\b|[\d,\s]+", "", words)
