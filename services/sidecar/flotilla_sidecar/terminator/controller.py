"""Declares the sidecar terminator: its watches, its writes, and the gatherer of its snapshots.

An index holds the pods with sidecars that must terminate now, so all others cost nothing.
"""

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Pods, Trigger, Watch
from flotilla_sidecar.terminator.containers import Ending
from flotilla_sidecar.terminator.plan import EndingSnapshot, plan, request_name

GATE = "SidecarTerminator"

ENDING = "ending"
"""Index: pods whose work is done and whose sidecars are not, all under this one key."""

ENDING_ON = "ending-on"
"""Index: the same pods by their nodes."""


def _is_ending(pod: Pod) -> bool:
    return Ending(pod=pod).interesting


PODS = Watch(
    POD,
    Pod,
    indexes={
        ENDING: lambda pod: (ENDING,) if _is_ending(pod) else (),
        ENDING_ON: lambda pod: (pod.spec.node_name,) if _is_ending(pod) else (),
    },
    writes=("patch",),
    subresources=("status",),
    pods=Pods(sidecars=True),
)
NODES = Watch(NODE, Node, gate=GATE)
REQUESTS = Watch(RECREATE_REQUEST, ContainerRecreateRequest, owner=POD, writes=("create",), gate=GATE)


class Gatherer:
    """Builds the snapshot of one pod."""

    def __init__(self, context: ControllerContext) -> None:
        self._pods = context.table(PODS)
        self._nodes = context.table(NODES)
        self._requests = context.table(REQUESTS)

    def keys(self) -> list[Key]:
        """Return the pods with sidecars that must terminate now."""
        return [pod.metadata.key for pod in self._pods.by_index(ENDING, ENDING)]

    def gather(self, key: Key, memory: Memory) -> EndingSnapshot | None:
        """Return the pod, its node and its request; None when there is nothing to terminate."""
        pod = self._pods.get(*key)
        ending = None if pod is None else Ending(pod=pod)
        if ending is None or not ending.interesting:
            return None
        return EndingSnapshot(
            ending=ending,
            node=self._nodes.get("", ending.pod.spec.node_name),
            request=self._requests.get(key[0], request_name(ending.pod.metadata.uid)),
        )

    def of_node(self, old: Node | None, new: Node | None) -> list[Key]:
        """Return the pods on a node that has just appeared, which wait for it."""
        if old is not None or new is None:
            return []
        return [pod.metadata.key for pod in self._pods.by_index(ENDING_ON, new.metadata.name)]


def _concerned(old: Pod | None, new: Pod | None) -> list[Key]:
    return [new.metadata.key] if new is not None and _is_ending(new) else []


CONTROLLER = ControllerSpec(
    name="sidecarterminator-controller",
    primary=PODS,
    wakes_itself=False,
    watches=(NODES, REQUESTS),
    workers=lambda settings: settings.sidecarterminator_workers,
    off=lambda settings, gates: "" if gates.on(GATE) else f"off: gate {GATE}",
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [Trigger(PODS, _concerned), Trigger(NODES, gatherer.of_node)],
    keys=Gatherer.keys,
    plan=plan,
)
