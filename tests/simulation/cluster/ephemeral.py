"""Ephemeral containers of the simulated kubelets: their command decides what they do.

`exit 3` ends with that code after a while, everything else runs until it is stopped.
"""

from collections.abc import Callable
from datetime import datetime

from flotilla_common.api.documents import mappings
from flotilla_common.control.plan import Json
from flotilla_common.model import ephemeral

EXIT = "exit"
START, END = "start ephemeral", "end ephemeral"
"""The kinds of the next action."""

Obstacle = Callable[[Json], str]
"""Why a container cannot be created; empty if it can."""


def next_of(pod: Json, obstacle: Obstacle) -> str:
    """Return the next action: to start one (or report why it does not start), or to end one; empty for none."""
    told = ephemeral.statuses_of(pod)
    found = mappings(pod["spec"].get("ephemeralContainers"))
    if any(one["name"] not in told or (_waits(one, told) and not obstacle(one)) for one in found):
        return START
    return END if any(_ends(one, told) for one in found) else ""


def gone_on(pod: Json, obstacle: Obstacle, now: datetime) -> Json:
    """Return the pod after the next action."""
    told, due = ephemeral.statuses_of(pod), next_of(pod, obstacle)
    found = mappings(pod["spec"].get("ephemeralContainers"))
    if due == START:
        new = {one["name"]: obstacle(one) for one in found if one["name"] not in told or _waits(one, told)}
        return ephemeral.started(pod, new, now)
    return ephemeral.ended(pod, {one["name"]: int(one["command"][1]) for one in found if _ends(one, told)}, now)


def _waits(container: Json, told: dict[str, Json]) -> bool:
    return "waiting" in told[container["name"]]["state"]


def _ends(container: Json, told: dict[str, Json]) -> bool:
    command = container.get("command", ())
    return bool(command) and command[0] == EXIT and "running" in told[container["name"]]["state"]
