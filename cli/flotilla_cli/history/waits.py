"""How long an object waited, and for what: a reason that is given again and again is one wait."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.tree.why import Why
from flotilla_common.control.plan import State

LASTING = (State.STUCK, State.HELD, State.WAITING)
"""States of reasons that tell what kept the object from getting on."""

Key = tuple[str, int]
"""What makes it the same wait: the code, and the place among the reasons of this code in one decision."""


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
    found: dict[Key, Wait] = {}
    held: set[Key] = set()  # what the decision before gave
    moments = [one.at for one in decisions if one.at is not None]
    for one, end in zip(decisions, [*moments[1:], until], strict=False):
        began = one.at or until
        now: set[Key] = set()
        for key, message, bad in _given(one):
            wait = found.setdefault(key, Wait(code=key[0], message=message, began=began, bad=bad))
            wait.message = message
            wait.seconds += max((end - began).total_seconds(), 0)
            wait.times += key not in held
            now.add(key)
        held = now
    return list(found.values())


def _given(one: Why) -> Iterator[tuple[Key, str, bool]]:
    """Return what makes it the same wait, the text, and whether something could not be done."""
    told = [(reason.code, reason.sentence, False) for reason in one.reasons if reason.state in LASTING]
    told += [(f"failed {error.phase}".rstrip(), error.message, True) for error in one.errors]
    seen = Counter[str]()
    for code, text, bad in told:
        yield (code, seen[code]), text, bad
        seen[code] += 1
