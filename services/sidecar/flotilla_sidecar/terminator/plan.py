"""Plans how the sidecars of a finished pod are terminated (container-extras.md §A4).

On a node with an agent this is a ContainerRecreateRequest, one per pod with any outcome: the kubelet does not
restart a container of a finished pod. On a virtual node the containers get an image that exits at once. If the exit
code of a sidecar must not count, the pod's phase is written first.

Plans have reasons only for a pod that does not end: the bus would keep a message for every pod that ever existed.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from flotilla_common.api.core import Node
from flotilla_common.api.keys import SIDECAR_TERMINATED
from flotilla_common.api.kinds.containerrecreaterequest.types import IGNORE, RECREATE_REQUEST, ContainerRecreateRequest
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import (
    Action,
    Event,
    Frozen,
    Intent,
    Json,
    ObjectRef,
    PatchType,
    Plan,
    Reason,
    Stage,
    State,
)
from flotilla_common.control.writes import create_of, patch_of
from flotilla_common.workload.ownership import owner_reference
from flotilla_sidecar.terminator.containers import IGNORE_EXIT_CODE_ENV, Ending

_EVENT = "SidecarTerminator"
_OVER = ("Succeeded", "Failed")


class EndingSnapshot(Frozen):
    """A pod, its node, and the request that terminates its sidecars, if there is one."""

    ending: Ending
    node: Node | None
    request: ContainerRecreateRequest | None = None

    @property
    def subject(self) -> ObjectRef:
        """The pod, as events and the bus name it."""
        return ObjectRef.of(POD, self.ending.pod.metadata)


def request_name(uid: str) -> str:
    """Return the name of the request for the pod with that uid: a later pod of the same name has another uid."""
    return f"sidecar-termination-{uid}"


def plan(snapshot: EndingSnapshot, now: datetime) -> Plan:
    """Plan the termination of the remaining sidecars."""
    ending, node = snapshot.ending, snapshot.node
    if not ending.interesting:
        return Plan()
    if node is None:
        where = ending.pod.spec.node_name
        message = f"node {where} does not exist, so it is unknown how to terminate sidecars"
        return Plan(
            reasons=(Reason(State.STUCK, "NodeNotFound", message, symptom=True),),
            errors=(("terminate", message),),
        )
    if node.metadata.labels.get("type") == "virtual-kubelet":
        return _virtual(ending)
    chain = tuple(_real(snapshot, now))
    return Plan(stages=(Stage(chains=(chain,)),) if chain else (), reasons=tuple(_stuck(snapshot)))


def _virtual(ending: Ending) -> Plan:
    """Change the images of the remaining sidecars. The event is emitted even if they have these images already."""
    images = {container.name: container.image for container in ending.pod.spec.containers}
    left = {name: ending.replaced[name] for name in ending.running(ending.replaced)}
    changed = [{"name": name, "image": image} for name, image in left.items() if images[name] != image]
    if not left:
        return Plan()
    event = Event(_EVENT, _message(left, "in-place update"))
    if not changed:
        return Plan(events=(event,))
    body: Json = {"spec": {"containers": changed}}
    patch = patch_of(
        POD,
        ending.pod.metadata,
        Intent.UPDATE,
        "end sidecars",
        body=body,
        patch_type=PatchType.STRATEGIC,
        on_success=event,
    )
    return Plan(stages=(Stage(chains=((patch,),)),))


def _real(snapshot: EndingSnapshot, now: datetime) -> Iterator[Action]:
    """Yield the request for sidecars whose exit code counts; then the phase, and the request for the others."""
    ending = snapshot.ending
    yield from _request(snapshot, ending.killed)
    if _came_back(snapshot) and ending.pod.status.phase not in _OVER:
        yield _final(ending, now)
        return
    if not ending.ignored or not ending.completed(ending.killed):
        return
    if ending.pod.status.phase not in _OVER:
        yield _final(ending, now)
    yield from _request(snapshot, ending.ignored)


def _came_back(snapshot: EndingSnapshot) -> list[str]:
    """Return the sidecars that were terminated and restarted.

    Their exit code was not 0, and the restart policy is OnFailure. The work of the pod has succeeded, so they must not
    prevent its end.
    """
    if snapshot.request is None:
        return []
    counts = {
        one.name: one.status_context.restart_count for one in snapshot.request.spec.containers if one.status_context
    }
    left = snapshot.ending.running(snapshot.ending.killed)
    return [name for name in left if name in counts and snapshot.ending.restarts(name) > counts[name]]


def _request(snapshot: EndingSnapshot, names: Iterable[str]) -> Iterator[Action]:
    """Yield the pod's request, unless it has had one."""
    left, meta = snapshot.ending.running(names), snapshot.ending.pod.metadata
    if not left or snapshot.request is not None:
        return
    body: Json = {
        **RECREATE_REQUEST.type_meta,
        "metadata": {
            "name": request_name(meta.uid),
            "namespace": meta.namespace,
            "ownerReferences": [owner_reference(POD, meta)],
        },
        "spec": {
            "podName": meta.name,
            "containers": [{"name": name} for name in left],
            "strategy": {"forceRecreate": True, "failurePolicy": IGNORE},
        },
    }
    event = Event(_EVENT, _message(left, "crr"))
    yield create_of(
        RECREATE_REQUEST,
        body,
        Intent.CREATE,
        "end sidecars",
        pods=(meta.name,),
        tells_if_taken=False,
        on_success=event,
    )


def _final(ending: Ending, now: datetime) -> Action:
    """Write the phase that follows from the main containers. The kubelet then stops what still runs."""
    condition = {
        "type": SIDECAR_TERMINATED,
        "status": "True",
        "lastTransitionTime": rfc3339(now),
        "message": "Terminated by Sidecar Terminator",
    }
    phase = "Succeeded" if ending.succeeded(ending.mains) else "Failed"
    return patch_of(
        POD,
        ending.pod.metadata,
        Intent.STATUS,
        f"the pod has {phase.lower()}",
        body={"status": {"phase": phase, "conditions": [condition]}},
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def _message(names: Iterable[str], how: str) -> str:
    return f"Try to terminate sidecar [{' '.join(names)}] using {how}"


def _stuck(snapshot: EndingSnapshot) -> Iterator[Reason]:
    """Yield a reason if a sidecar still runs although its request is complete."""
    ending, request = snapshot.ending, snapshot.request
    left = ending.running(ending.killed)
    if left and request is not None and request.completed:
        names, verb = ", ".join(left), "run" if left[1:] else "runs"
        message = f"sidecar {names} still {verb} after ContainerRecreateRequest {request.metadata.name}"
        hint = f"check why the request did not end it, or set {IGNORE_EXIT_CODE_ENV}"
        yield Reason(State.STUCK, "SidecarsStillRunning", f"{message}: {hint}", (request.metadata.name,), symptom=True)
