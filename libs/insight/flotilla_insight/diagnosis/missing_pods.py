"""Finds out why nodes have no pod of a DaemonSet or BroadcastJob, without I/O; nodes with the same reason together.

The most specific source comes first: a pod for the node explains itself, in the scheduler's words; the template
excludes nodes; and the service's reasons tell what it waits for.
"""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.text import named
from flotilla_common.workload.causes import Cause, Group
from flotilla_common.workload.placement import node_of
from flotilla_insight.views.kindview import CoveredNodes

TO_COME = "it gets one with the next passes"
ENDED = ("Failed", "Succeeded")


class MissingPods(msgspec.Struct, frozen=True):
    """Nodes without a pod, and the reason."""

    why: str
    nodes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the first nodes by name, and the reason."""
        return f"{named(self.nodes)}: {self.why}"


def vacancies(served: CoveredNodes, troubles: Sequence[Group], reasons: Sequence[Reason]) -> list[MissingPods]:
    """Return the nodes without a pod, those that need one first, then by number.

    `troubles`: problems of pods; `reasons`: those of the service.
    """
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
    return [MissingPods(why, tuple(names)) for (_, why), names in ordered]


def _is_there(pod: Pod, *, once: bool) -> bool:
    """Report whether the pod runs on its node, will start there, or, if `once`, has finished."""
    if pod.status.phase in ENDED:
        return once
    return bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None


def _of_pods(pods: Sequence[Pod], causes: Mapping[str, Cause]) -> str:
    """Return what is wrong with a pod for the node; empty without any."""
    for pod in pods:
        name = pod.metadata.name
        if (cause := causes.get(name)) is not None:
            return cause.message
        if pod.metadata.deletion_timestamp is not None:
            return "its last pod is terminating"
        if pod.status.phase in ENDED:
            return "its pod has ended, and is about to be replaced"
    return "its pod has no node yet" if pods else ""


def _told(node: str, reasons: Sequence[Reason]) -> str:
    """Return the service's reason for the node, or for all pods that it cannot create."""
    said = (one.sentence for one in reasons if node in one.objects or _is_about_all(one))
    return next(said, TO_COME)


def _is_about_all(reason: Reason) -> bool:
    """Report whether the reason keeps every pod from being created."""
    return reason.state is State.STUCK and not reason.symptom and not reason.objects
