"""Reads the ConfigMaps that pods wait for, by name and on demand.

They are in the namespaces of users, among unrelated ConfigMaps, so they are neither watched nor sent over the bus. Only
this controller adds keys, and none is ever removed: an answer with the relevant key is valid for a while, any other
answer for a single plan.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Frozen
from flotilla_common.control.reads import Get, Reads
from flotilla_sidecar.launchpriority.launch import barrier_name

GOOD_SECONDS = 20.0
"""The time for which an answer is valid: a user may have deleted the ConfigMap."""

_KEY = re.compile(r"p_-?[0-9]+")


class Barrier(Frozen):
    """The apiserver's answer about the ConfigMap."""

    uid: str = ""  # empty: it does not exist
    version: str = ""
    keys: frozenset[str] = frozenset()
    earlier: bool = False  # belongs to an earlier pod of this name, and is about to be collected
    foreign: bool = False  # belongs to another owner that uses the same name
    going: bool = False  # being deleted


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
        found = await found_or_none(self._get(CONFIG_MAP, namespace, question.name))
        barrier = Barrier() if found is None else _barrier(_decode(found), pod, question.uid)
        return barrier, self._clock.monotonic() + GOOD_SECONDS


def _barrier(found: ConfigMap, pod: str, uid: str) -> Barrier:
    owners = [owner for owner in found.metadata.owner_references if owner.kind == POD.kind]
    ours = any(owner.uid == uid for owner in owners)
    earlier = any(owner.name == pod for owner in owners) and all(map(_KEY.fullmatch, found.data))
    return Barrier(
        uid=found.metadata.uid,
        version=found.metadata.resource_version,
        keys=frozenset(found.data),
        earlier=earlier and not ours,
        foreign=not ours and not earlier,
        going=found.metadata.deletion_timestamp is not None,
    )
