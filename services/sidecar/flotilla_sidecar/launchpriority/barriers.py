"""The ConfigMaps that pods wait for, read by their names when somebody needs to know.

They are in the namespaces of users, among ConfigMaps that are none of our business, so they are neither watched nor
sent over the bus. Only this controller adds keys, and nobody takes one away: an answer with the key that matters is
good for a while, any other one for a single plan.
"""

import re
from collections.abc import Callable

import msgspec

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.control.plan import Frozen
from flotilla_common.control.questions import Get, Questions
from flotilla_sidecar.launchpriority.launch import barrier_name

GOOD_SECONDS = 20.0
"""How long an answer is believed: somebody may have deleted the ConfigMap by hand."""

_KEY = re.compile(r"p_-?[0-9]+")


class Barrier(Frozen):
    """What the apiserver said of the ConfigMap."""

    uid: str = ""  # empty: there is none
    version: str = ""
    keys: frozenset[str] = frozenset()
    earlier: bool = False  # it is that of an earlier pod of this name, and about to be collected
    foreign: bool = False  # it is somebody else's, who happens to use the name
    going: bool = False  # it is being deleted


_decode = msgspec.json.Decoder(ConfigMap).decode


class Barriers:
    """Asks for the ConfigMaps of pods, by uid of the pod and name of the ConfigMap."""

    def __init__(self, get: Get, clock: Clock, again: Callable[[str, str], None]) -> None:
        """`again` plans whoever has asked."""
        self._get = get
        self._clock = clock
        self._questions = Questions(self._read, clock, again)
        self.forget, self.run = self._questions.forget, self._questions.run

    def of(self, pod: Pod, key: str) -> Barrier | None:
        """The pod's ConfigMap; None until the apiserver has answered, which has the pod planned again. An answer
        without this key is given once: what is planned with it changes the ConfigMap."""
        whose, question = pod.metadata.key, (pod.metadata.uid, barrier_name(pod))
        answer = self._questions.ask(whose, question)
        if answer is None:
            return None
        barrier, until = answer
        late = until < self._clock.monotonic()
        if late or barrier.earlier or key not in barrier.keys:
            self._questions.forget(whose)
        return self.of(pod, key) if late else barrier

    async def _read(self, key: Key, question: tuple[str, str]) -> tuple[Barrier, float]:
        """What the apiserver says, and until when that is believed."""
        found = await found_or_none(self._get(CONFIG_MAP, key[0], question[1]))
        barrier = Barrier() if found is None else _barrier(_decode(found), key[1], question[0])
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
