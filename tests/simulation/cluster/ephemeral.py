"""Ephemeral containers as a kubelet sees them: they are started once, when somebody adds them to a pod that runs, and
never again.

What one does is its command: `exit 3` ends with that code after a while, everything else runs for ever.
"""

from collections.abc import Callable

from flotilla_common.api.documents import mappings, member
from flotilla_common.control.plan import Json
from tests.simulation.cluster import containers

EXIT = "exit"
START, END = "start ephemeral", "end ephemeral"
"""What can be next."""

Obstacle = Callable[[Json], str]
"""Why a container cannot be created; empty if it can."""


def next_of(pod: Json, obstacle: Obstacle) -> str:
    """What is next: to start one (or to say why it does not), or to end one; empty for nothing."""
    told = _statuses(pod)
    found = mappings(pod["spec"].get("ephemeralContainers"))
    if any(one["name"] not in told or (_waits(one, told) and not obstacle(one)) for one in found):
        return START
    return END if any(_ends(one, told) for one in found) else ""


def gone_on(pod: Json, obstacle: Obstacle, now: str) -> list[Json]:
    """The statuses after that."""
    told, due = _statuses(pod), next_of(pod, obstacle)
    for one in mappings(pod["spec"].get("ephemeralContainers")):
        name = one["name"]
        if due == START and (name not in told or _waits(one, told)):
            why = obstacle(one)
            told[name] = containers.waiting(one, why) if why else containers.running(pod, one, 0, now)
        elif due == END and _ends(one, told):
            told[name] = containers.stopped(told[name], now, "", for_good=True, code=int(one["command"][1]))
    return list(told.values())


def _statuses(pod: Json) -> dict[str, Json]:
    return {str(one["name"]): one for one in mappings(member(pod, "status").get("ephemeralContainerStatuses"))}


def _waits(container: Json, told: dict[str, Json]) -> bool:
    return "waiting" in told[container["name"]]["state"]


def _ends(container: Json, told: dict[str, Json]) -> bool:
    command = container.get("command", ())
    return bool(command) and command[0] == EXIT and "running" in told[container["name"]]["state"]
