"""Reports nodes whose agent does not answer.

An agent acknowledges a request for its node within about a second, long before it has finished. Without an
acknowledgement for a while there is no agent, or it does not reach the bus. (If an agent is lost later, in the middle
of its work, the work times out.)
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from flotilla_common.api.meta import later
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.planbuilder import Deadlines
from flotilla_common.control.text import first_names, named, nodes_word

ANSWERS_WITHIN = timedelta(seconds=10)
"""Time after which an agent without an answer is reported."""

TO_DO = "see that it runs there and reaches the bus"


def unreachable(asked: Mapping[str, datetime], now: datetime, deadlines: Deadlines) -> dict[str, datetime]:
    """Return the nodes that should have answered by now, each with the time of the request.

    `deadlines` gets the time when the next answer is due.
    """
    return {name: since for name, since in asked.items() if deadlines.passed(later(since, ANSWERS_WITHIN), now)}


def no_agent(nodes: Mapping[str, datetime]) -> Reason:
    """Return the reason that names these nodes, and since when the first of them is silent."""
    names = sorted(nodes)
    since = min(nodes.values()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    message = f"no node agent has answered since {since} on {nodes_word(len(names))}: {named(names)}; {TO_DO}"
    return Reason(State.STUCK, "WaitingForNodeAgent", message, first_names(names), symptom=True)
