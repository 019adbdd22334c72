"""Nodes whose agent does not answer, as a reason for users.

An agent acknowledges within a second or so what is asked of its node, long before that is done. Without an
acknowledgement for a while there is no agent, or it does not reach the bus. (An agent that is lost later, in the middle
of its work, is given up when the time for that work is over.)
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from flotilla_common.api.moments import later
from flotilla_common.control.draft import Waits
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.wording import first_names, named, nodes_word

ANSWERS_WITHIN = timedelta(seconds=10)
"""An agent that takes longer is reported."""

TO_DO = "see that it runs there and reaches the bus"


def silent(asked: Mapping[str, datetime], now: datetime, waits: Waits) -> dict[str, datetime]:
    """Those nodes, each with the time when it was asked, that should have answered by now. `waits` gets the moment when
    the next one should have."""
    return {name: since for name, since in asked.items() if waits.passed(later(since, ANSWERS_WITHIN), now)}


def no_agent(nodes: Mapping[str, datetime]) -> Reason:
    """The reason that names these nodes, and since when the first of them is silent."""
    names = sorted(nodes)
    since = min(nodes.values()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = f"no node agent has answered since {since} on {nodes_word(len(names))}: {named(names)}; {TO_DO}"
    return Reason(State.STUCK, "WaitingForNodeAgent", message, first_names(names), symptom=True)
