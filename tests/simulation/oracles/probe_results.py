"""Results of probes on pods: a pod shows the results of its probe in their order (podprobemarker.md §6).

Probes of scenarios number their results (`1 players`), so that an old one can be told from a new one.
"""

from collections.abc import Iterator

from flotilla_common.api.documents import mappings, member, strings
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Json
from tests.simulation.oracles.view import Commit, View

TYPE = "shop.io/idle"


def shown_on(pod: Json) -> tuple[str, str] | None:
    """Return status and message of the pod's condition; None if it has none."""
    conditions = mappings(member(pod, "status").get("conditions"))
    found = next((one for one in conditions if one.get("type") == TYPE), None)
    return None if found is None else (found["status"], found.get("message") or "")


def _number(message: str) -> int:
    first = message.partition(" ")[0]
    return int(first) if first.isdigit() else 0


class ProbeResults:
    """The rule for probe results: the last result that each pod has shown."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # by uid

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource != POD or version.after is None or not commit.ours:
            return
        shown = shown_on(version.after)
        if shown is None:
            return
        status, message = shown
        number, last = _number(message), self._numbers.get(version.uid, 0)
        if number < last:
            yield f"shows {message or 'nothing'} after the result with number {last}"
        self._numbers[version.uid] = max(number, last)
        metadata = member(version.after, "metadata")
        idle = strings(metadata.get("labels")).get("idle") == "yes"
        busy = strings(metadata.get("annotations")).get("busy") == "yes"
        wanted = (True, False) if status == "True" else (False, bool(number))
        if (idle, busy) != wanted:
            yield f"has label idle {idle} and annotation busy {busy}, and shows {status}, {message or 'nothing'}"
        if _all_of(version.before or {}) == _all_of(version.after):
            yield "is written, and shows what it showed before"


def _all_of(pod: Json) -> tuple[object, ...]:
    metadata, conditions = member(pod, "metadata"), mappings(member(pod, "status").get("conditions"))
    shown = [(one.get("type"), one.get("status"), one.get("message") or "") for one in conditions]
    return strings(metadata.get("labels")), strings(metadata.get("annotations")), shown
