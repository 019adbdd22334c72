"""Changes pods of the stand-in at a given rate; records when each change was sent and when lost pods were replaced."""

import math
from collections import defaultdict, deque

from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import SystemClock
from tests.perf.played.collection import Collection, Key
from tests.testkit.documents import Json

TICK_SECONDS = 0.01
"""The changes of this time are made at once."""


def stride(count: int) -> int:
    """Return a step that visits all of `count` pods, neighbours far apart."""
    step = max(int(count * 0.618), 1)
    while math.gcd(step, count) > 1:
        step += 1
    return step


class Player:
    """Changes pods one after the other, all of them before any of them again."""

    def __init__(self, pods: Collection, count: int) -> None:
        """`count`: the pods that exist from the beginning."""
        self.sent: dict[int, float] = {}  # monotonic seconds by resourceVersion
        self.reactions: list[float] = []  # seconds from a pod's loss to the creation of another one for its owner
        self._pods = pods
        self._count = count
        self._step = stride(count)
        self._at = 0
        self._clock = SystemClock()
        self._lost: defaultdict[Key, deque[float]] = defaultdict(deque)  # by owner

    async def change(self, rate: float, seconds: float) -> None:
        """Change `rate` pods a second."""
        self.sent.clear()
        started = self._clock.monotonic()
        done = 0
        while (passed := self._clock.monotonic() - started) < seconds:
            while done < passed * rate:
                done += 1
                if version := self._pods.change(self._next()):
                    self.sent[version] = self._clock.monotonic()
            await self._clock.sleep(TICK_SECONDS)

    async def lose(self, rate: float, seconds: float) -> None:
        """Remove `rate` pods a second: their owners replace them, which is the reaction that is measured."""
        self.reactions.clear()
        for _ in range(int(rate * seconds)):
            key = self._next_key()
            self._lost[owner_of(key)].append(self._clock.monotonic())
            self._pods.remove(key)
            await self._clock.sleep(1 / rate)

    def created(self, resource: Resource, document: Json) -> None:
        """Note a new pod."""
        if resource != POD:
            return
        owners = document["metadata"].get("ownerReferences") or [{}]
        waiting = self._lost[document["metadata"]["namespace"], owners[0].get("name", "")]
        if waiting:
            self.reactions.append(self._clock.monotonic() - waiting.popleft())

    def _next(self) -> int:
        self._at = (self._at + self._step) % self._count
        return self._at

    def _next_key(self) -> Key:
        for _ in range(self._count):
            if (key := self._pods.key(self._next())) is not None:
                return key
        raise RuntimeError("none of the pods that existed from the beginning is left")


def owner_of(pod: Key) -> Key:
    """Return the key of the CloneSet of a pod, by its name."""
    return pod[0], pod[1].rpartition("-")[0]
