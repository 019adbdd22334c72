"""Nodes that nobody answers for, said plainly.

An agent says within a second or so that it has seen what is asked of its node, long before that is done. So what it has
not said anything of for a while tells that there is none, or that it does not reach the bus. (One that is lost later,
in the middle of its work, is given up when the time for that work is over.)
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from flotilla_common.control.plan import Reason
from flotilla_jobs.waits import Waits

ANSWERS_WITHIN = timedelta(seconds=10)
"""After this long a node is said to be silent."""

NAMED = 5
"""Nodes that a message names; the rest are counted."""

TO_DO = "see that it runs there and reaches the bus"


def silent(asked: Mapping[str, datetime], now: datetime, waits: Waits) -> dict[str, datetime]:
    """Of nodes that have not answered, and since when, those that take too long; the others are looked at again."""
    return {name: since for name, since in asked.items() if waits.passed(since + ANSWERS_WITHIN, now)}


def no_agent(nodes: Mapping[str, datetime]) -> Reason:
    """What to say of these nodes, which are silent since then."""
    names = sorted(nodes)
    since = min(nodes.values()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = f"no node agent has answered since {since} on {count(len(names))}: {named(names)}; {TO_DO}"
    return Reason(code="WaitingForNodeAgent", message=message, objects=tuple(names[:NAMED]))


def count(number: int) -> str:
    """So many nodes."""
    return f"{number} node" if number == 1 else f"{number} nodes"


def named(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
