"""The ConfigMaps that pods wait for, read by their names when somebody needs to know.

They are in the namespaces of users, among ConfigMaps that are none of our business, so they are neither watched nor
sent over the bus. Only this controller adds keys, and nobody takes one away: an answer with the key that matters is
good for a while, any other one for a single plan.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP, POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.control.plan import Frozen
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_sidecar.launchpriority.launch import barrier_name

RETRY_SECONDS = 2.0
"""Between questions that were not answered."""

GOOD_SECONDS = 20.0
"""How long an answer is believed: somebody may have deleted the ConfigMap by hand."""

SIDE_BY_SIDE = 16
"""Questions under way at once; a rollout brings many pods in the same moment."""


_KEY = re.compile(r"p_-?[0-9]+")


class Barrier(Frozen):
    """What the apiserver said of the ConfigMap."""

    uid: str = ""  # empty: there is none
    version: str = ""
    keys: frozenset[str] = frozenset()
    earlier: bool = False  # it is that of an earlier pod of this name, and about to be collected
    foreign: bool = False  # it is somebody else's, who happens to use the name
    going: bool = False  # it is being deleted


class _Answer(Frozen):
    pod: str  # its uid
    until: float
    barrier: Barrier


class _ConfigMap(Model):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


_decode = msgspec.json.Decoder(_ConfigMap).decode


class Barriers:
    """The questions that are open, and the answers that still count."""

    def __init__(
        self,
        get: Callable[[Resource, str, str], Awaitable[bytes]],
        clock: Clock,
        again: Callable[[str, str], None],
    ) -> None:
        """`get` reads an object; `again` plans whoever has asked."""
        self._get = get
        self._clock = clock
        self._again = again
        self._open: dict[Key, Pod] = {}
        self._answers: dict[Key, _Answer] = {}
        self._wake = asyncio.Event()
        self._free = asyncio.Semaphore(SIDE_BY_SIDE)
        self._log = structlog.get_logger()

    def of(self, pod: Pod, key: str) -> Barrier | None:
        """The pod's ConfigMap; None until the apiserver has answered, which has the pod planned again. An answer
        without this key is given once: what is planned with it changes the ConfigMap."""
        whose = (pod.metadata.namespace, pod.metadata.name)
        answer = self._answers.get(whose)
        if answer is None or answer.pod != pod.metadata.uid or answer.until < self._clock.monotonic():
            self._open[whose] = pod
            self._wake.set()
            return None
        if answer.barrier.earlier or key not in answer.barrier.keys:
            del self._answers[whose]
        return answer.barrier

    def forget(self, key: Key) -> None:
        """The pod waits no more, or is gone."""
        self._open.pop(key, None)
        self._answers.pop(key, None)

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.gather(*(self._ask(key, pod) for key, pod in list(self._open.items())))
            if self._open and not self._wake.is_set():
                await self._clock.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _ask(self, key: Key, pod: Pod) -> None:
        try:
            async with self._free:
                barrier = await self._look(pod)
        except (ApiError, Unreachable, msgspec.MsgspecError) as error:
            self._log.warning("cannot read a barrier", pod="/".join(key), error=str(error))
            return
        if self._open.get(key) is pod:
            del self._open[key]
            until = self._clock.monotonic() + GOOD_SECONDS
            self._answers[key] = _Answer(pod=pod.metadata.uid, until=until, barrier=barrier)
        self._again(*key)

    async def _look(self, pod: Pod) -> Barrier:
        try:
            found = _decode(await self._get(CONFIG_MAP, pod.metadata.namespace, barrier_name(pod)))
        except ApiError as error:
            if error.code == 404:
                return Barrier()
            raise
        owners = [owner for owner in found.metadata.owner_references if owner.kind == POD.kind]
        ours = any(owner.uid == pod.metadata.uid for owner in owners)
        earlier = any(owner.name == pod.metadata.name for owner in owners) and all(map(_KEY.fullmatch, found.data))
        return Barrier(
            uid=found.metadata.uid,
            version=found.metadata.resource_version,
            keys=frozenset(found.data),
            earlier=earlier and not ours,
            foreign=not ours and not earlier,
            going=found.metadata.deletion_timestamp is not None,
        )
