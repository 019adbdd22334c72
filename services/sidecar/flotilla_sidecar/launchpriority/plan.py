"""Plans the next key for a pod whose containers start in order (container-extras.md §B3).

The highest priority among the containers that are not ready is released. Equal priorities start together; lower ones
follow when all higher ones are ready. With the last key the pod gets an annotation that its start is complete.

Plans have no reasons: the bus would keep a message for every pod that ever existed. `flotilla explain pod` reads the
order from the pod itself.
"""

from datetime import datetime, timedelta

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.control.plan import Action, Chain, Event, Frozen, Intent, Json, ObjectRef, Patch, Plan, Stage
from flotilla_common.control.writes import create_of, patch_of
from flotilla_sidecar.launchpriority.launch import (
    GOOD_SECONDS,
    Barrier,
    barrier_name,
    is_launching,
    is_proven,
    key_of,
    pending,
)

GOING_SECONDS = 1.0
"""The interval for checking a ConfigMap that is being deleted."""


class LaunchSnapshot(Frozen):
    """A pod, and its ConfigMap if that had to be read and was."""

    pod: Pod
    barrier: Barrier | None = None

    @property
    def subject(self) -> ObjectRef:
        """The pod, as the bus names it."""
        return ObjectRef.of(POD, self.pod.metadata)


def unproven(pod: Pod) -> int | None:
    """Return the highest priority to be released, unless the pod proves that it is."""
    ranks = pending(pod) if is_launching(pod) else []
    return ranks[-1] if ranks and not is_proven(pod, ranks[-1]) else None


def plan(snapshot: LaunchSnapshot, now: datetime) -> Plan:
    """Plan at most one key, and the annotation with the last one."""
    pod = snapshot.pod
    if not is_launching(pod):
        return Plan()
    ranks = pending(pod)
    if not ranks or _is_there(snapshot, ranks[0]):
        return _doing((_complete(pod),))
    if is_proven(pod, ranks[-1]):
        return Plan()
    if snapshot.barrier is None:  # it is being read
        return Plan()
    if snapshot.barrier.going:
        return Plan(wake_at=now + timedelta(seconds=GOING_SECONDS))
    if snapshot.barrier.foreign:
        return _in_the_way(pod, key_of(ranks[-1]) in snapshot.barrier.keys, now)
    # Check again while containers are about to be created: a user may delete their ConfigMap.
    again = now + timedelta(seconds=GOOD_SECONDS) if pod.spec.node_name else None
    if _is_there(snapshot, ranks[-1]):
        return Plan(wake_at=again)
    release = _release(pod, snapshot.barrier, ranks[-1])
    return _doing((release, _complete(pod)) if ranks[0] == ranks[-1] else (release,), again)


def _is_there(snapshot: LaunchSnapshot, rank: int) -> bool:
    barrier = snapshot.barrier
    stored = barrier is not None and not (barrier.earlier or barrier.foreign) and key_of(rank) in barrier.keys
    return stored or is_proven(snapshot.pod, rank)


def _doing(chain: Chain, wake_at: datetime | None = None) -> Plan:
    return Plan(stages=(Stage(chains=(chain,)),), wake_at=wake_at)


def _in_the_way(pod: Pod, has_key: bool, now: datetime) -> Plan:
    """Write nothing to another owner's ConfigMap, and emit an event that the containers wait for its deletion.

    If it has the key by chance, the containers start.
    """
    wake_at = now + timedelta(seconds=GOOD_SECONDS)
    if has_key:
        return Plan(wake_at=wake_at)
    message = (
        f"containers wait: ConfigMap {barrier_name(pod)}, whose keys start them in order, belongs to another owner. "
        "Delete or rename it"
    )
    event = Event("BarrierNameTaken", message, warning=True)
    return Plan(events=(event,), wake_at=wake_at)


def _release(pod: Pod, barrier: Barrier, rank: int) -> Action:
    key, cause, pods = key_of(rank), f"container priority {rank}", (pod.metadata.name,)
    # This owner neither controls nor blocks: the ConfigMap is just deleted with the pod.
    owned = {"ownerReferences": [{**POD.type_meta, "name": pod.metadata.name, "uid": pod.metadata.uid}]}
    name, namespace = barrier_name(pod), pod.metadata.namespace
    if not barrier.uid:
        metadata: Json = {"name": name, "namespace": namespace} | owned
        body: Json = {**CONFIG_MAP.type_meta, "metadata": metadata}
        return create_of(
            CONFIG_MAP, body | {"data": {key: "true"}}, Intent.CREATE, cause, pods=pods, tells_if_taken=False
        )
    data: dict[str, str | None] = {key: "true"}
    meta = ObjectMeta(name=name, namespace=namespace, uid=barrier.uid, resource_version=barrier.version)
    if not barrier.earlier:
        return patch_of(CONFIG_MAP, meta, Intent.UPDATE, cause, pods=pods, body={"data": data})
    # The keys of an earlier pod would start this one in any order. Owned by this pod, the ConfigMap is not collected.
    body = {"metadata": owned, "data": dict.fromkeys(sorted(barrier.keys)) | data}
    return patch_of(CONFIG_MAP, meta, Intent.UPDATE, cause, pods=pods, body=body, on_version=True)


def _complete(pod: Pod) -> Patch:
    body = {"metadata": {"annotations": {LAUNCH_COMPLETED: "true"}}}
    return patch_of(POD, pod.metadata, Intent.REFRESH, "the last container may start", body=body)
