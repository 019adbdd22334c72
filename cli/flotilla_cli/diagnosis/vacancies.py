"""Why a node has no pod of a DaemonSet or BroadcastJob: one reason for each, nodes with the same one together (pure).

Who knows best is asked first: a pod that is made for the node says why it is not there yet, in the scheduler's words;
the template says which nodes it is not for; and what the service waits for is in its reasons.
"""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_cli.views.kindview import Served
from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.wording import named
from flotilla_common.workload.causes import Cause, Group
from flotilla_common.workload.placement import node_of

TO_COME = "it gets one with the next passes"
ENDED = ("Failed", "Succeeded")


class Vacancy(msgspec.Struct, frozen=True):
    """Nodes without a pod, and why."""

    why: str
    nodes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The first of the nodes by name, and the reason."""
        return f"{named(self.nodes)}: {self.why}"


def vacancies(served: Served, troubles: Sequence[Group], reasons: Sequence[Reason]) -> list[Vacancy]:
    """The nodes on which no pod is, those that want one first, then by number. `troubles`: what is known against pods;
    `reasons`: those of the service."""
    causes = {name: group.cause for group in troubles for name in group.pods}
    of_nodes: dict[str, list[Pod]] = {}
    for pod in served.pods:
        of_nodes.setdefault(node_of(pod), []).append(pod)
    found: dict[tuple[bool, str], list[str]] = {}
    for node in sorted(served.nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        mine = of_nodes.get(name, [])
        if not any(_is_there(pod, once=served.coverage.once) for pod in mine):
            why_not = served.coverage.why_not(node)
            why = _of_pods(mine, causes) or why_not or _told(name, reasons)
            found.setdefault((bool(why_not), why), []).append(name)
    ordered = sorted(found.items(), key=lambda group: (group[0][0], -len(group[1])))
    return [Vacancy(why, tuple(names)) for (_, why), names in ordered]


def _is_there(pod: Pod, *, once: bool) -> bool:
    """It runs on its node, or is about to start there, or, if once is enough, has run."""
    if pod.status.phase in ENDED:
        return once
    return bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None


def _of_pods(pods: Sequence[Pod], causes: Mapping[str, Cause]) -> str:
    """What keeps a pod that is made for the node; empty without any."""
    for pod in pods:
        name = pod.metadata.name
        if (cause := causes.get(name)) is not None:
            return cause.message
        if pod.metadata.deletion_timestamp is not None:
            return "its last pod is on its way out"
        if pod.status.phase in ENDED:
            return "its pod has ended, and is about to be replaced"
    return "its pod has no node yet" if pods else ""


def _told(node: str, reasons: Sequence[Reason]) -> str:
    """What the service says of the node, or of all that it cannot create."""
    said = (one.sentence for one in reasons if node in one.objects or _is_about_all(one))
    return next(said, TO_COME)


def _is_about_all(reason: Reason) -> bool:
    """Return whether the reason keeps every pod from being made."""
    return reason.state is State.STUCK and not reason.symptom and not reason.objects
