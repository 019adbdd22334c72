"""Declares the container launch priority controller: its watches, its writes, and the gatherer of its snapshots.

An index holds the pods that start their containers in order, so all others cost nothing. The ConfigMaps of pods are in
the namespaces of users, among unrelated ones, so they are neither watched nor sent over the bus, but read by name and
on demand.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.clock import Clock
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.reads import Get, Reads
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import AccessRule, Pods, Trigger, Watch
from flotilla_sidecar.launchpriority.launch import GOOD_SECONDS, Barrier, barrier_name, is_launching, key_of
from flotilla_sidecar.launchpriority.plan import LaunchSnapshot, plan, unproven

LAUNCHING = "launching"
"""Index: pods that start their containers in order, all under this one key."""


PODS = Watch(
    POD,
    Pod,
    indexes={LAUNCHING: lambda pod: (LAUNCHING,) if is_launching(pod) else ()},
    writes=("patch",),
    pods=Pods(sidecars=True),
)
_KEY = re.compile(r"p_-?[0-9]+")


class Question(NamedTuple):
    """A request for the ConfigMap of a pod."""

    pod: Key
    uid: str
    name: str


_decode = msgspec.json.Decoder(ConfigMap).decode


class Barriers:
    """Reads the ConfigMaps of pods, by uid of the pod and name of the ConfigMap."""

    def __init__(self, get: Get, clock: Clock, requeue: Callable[[str, str], None]) -> None:
        """Take `get`, which reads an object, and `requeue`, which plans the asking pod again."""
        self._get = get
        self._clock = clock
        self._reads = Reads(self._read, clock, requeue)
        self.forget, self.run = self._reads.forget, self._reads.run

    def of(self, pod: Pod, key: str) -> Barrier | None:
        """Return the pod's ConfigMap; None until the apiserver has answered, which plans the pod again.

        An answer without the key is returned once: what is planned from it changes the ConfigMap.
        """
        meta = pod.metadata
        answer = self._reads.ask_only(meta.key, Question(meta.key, meta.uid, barrier_name(pod)))
        if answer is None:
            return None
        barrier, until = answer
        late = until < self._clock.monotonic()
        if late or barrier.earlier or key not in barrier.keys:
            self.forget(meta.key)
        return self.of(pod, key) if late else barrier

    async def _read(self, question: Question) -> tuple[Barrier, float]:
        """Return the apiserver's answer, and until when it is valid."""
        namespace, pod = question.pod
        body = await found_or_none(self._get(CONFIG_MAP, namespace, question.name))
        barrier = Barrier() if body is None else _barrier(_decode(body), pod, question.uid)
        return barrier, self._clock.monotonic() + GOOD_SECONDS


def _barrier(config_map: ConfigMap, pod: str, uid: str) -> Barrier:
    owners = [owner for owner in config_map.metadata.owner_references if owner.kind == POD.kind]
    ours = any(owner.uid == uid for owner in owners)
    earlier = any(owner.name == pod for owner in owners) and all(map(_KEY.fullmatch, config_map.data))
    return Barrier(
        uid=config_map.metadata.uid,
        version=config_map.metadata.resource_version,
        keys=frozenset(config_map.data),
        earlier=earlier and not ours,
        foreign=not ours and not earlier,
        going=config_map.metadata.deletion_timestamp is not None,
    )


class Gatherer:
    """Builds the snapshot of one pod."""

    def __init__(self, context: ControllerContext) -> None:
        self._pods = context.table(PODS)
        self._barriers = Barriers(context.get, context.clock, context.requeue)
        context.add_task(self._barriers.run)

    def keys(self) -> list[Key]:
        """Return the pods that are starting their containers in order."""
        return [pod.metadata.key for pod in self._pods.by_index(LAUNCHING, LAUNCHING)]

    def gather(self, key: Key, memory: Memory) -> LaunchSnapshot | None:
        """Return the pod, with its ConfigMap if needed; None when it is gone or no longer waits."""
        pod = self._pods.get(*key)
        if pod is None or not is_launching(pod):
            self._barriers.forget(key)
            return None
        rank = unproven(pod)
        return LaunchSnapshot(pod=pod, barrier=None if rank is None else self._barriers.of(pod, key_of(rank)))


def _concerned(old: Pod | None, new: Pod | None) -> list[Key]:
    """Return the key of a pod that waits, or waited before the change."""
    return list(dict.fromkeys(pod.metadata.key for pod in (old, new) if pod is not None and is_launching(pod)))


WORKERS = 4
"""The number of workers, as in the reference (install.md §4)."""

CONTROLLER = ControllerSpec(
    name="container-launch-priority-controller",
    primary=PODS,
    wakes_itself=False,
    access=(AccessRule(CONFIG_MAP, ("create", "get", "patch")),),
    workers=WORKERS,
    off=lambda settings, gates: "",
    build=lambda context, options: Gatherer(context),
    triggers=lambda gatherer: [Trigger(PODS, _concerned)],
    keys=Gatherer.keys,
    plan=plan,
)
