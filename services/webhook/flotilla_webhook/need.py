"""In which namespaces PersistentPodStates make the pod webhook necessary.

A watch of their own tells. What is needed is asked about at once; what is no longer needed stays for a while: another
replica may know of a PersistentPodState that is admitted just now, and that nobody can see yet.
"""

from collections.abc import Callable

import msgspec
import structlog

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.meta import metadata_of
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_common.kube.reflector import HeadMeta, Reflector

LINGER_SECONDS = 10.0
"""How long a namespace stays that nobody needs any more. An admitted object is seen within a second; the rest is for a
slow apiserver."""

_LOOK_SECONDS = 2.0


class Need:
    """The namespaces, as a `Sink` of the watch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listeners: list[Callable[[], None]] = []
        self._living: dict[str, str] = {}  # namespaces by uid
        self._listed: dict[str, str] = {}  # those of the LIST under way
        self._until: dict[str, float] = {}  # until when namespaces stay that nothing is seen in
        self._complete = False

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the namespaces may be others than before."""
        self._listeners.append(listener)

    def expect(self, namespace: str) -> None:
        """One is about to be stored there."""
        self._until[namespace] = self._clock.monotonic() + LINGER_SECONDS

    def namespaces(self, armed: frozenset[str]) -> frozenset[str]:
        """Where pods must be asked about, given where they are now."""
        seen, now = frozenset(self._living.values()), self._clock.monotonic()
        for namespace in armed - seen:
            self._until.setdefault(namespace, now + LINGER_SECONDS)
        staying = {name for name, end in self._until.items() if end > now or (not self._complete and name in armed)}
        self._until = {name: end for name, end in self._until.items() if name in staying and name not in seen}
        return seen | staying

    async def follow(self, api: Api) -> None:
        """Watch until cancelled."""
        await Reflector(api, PERSISTENT_POD_STATE, self, self._clock).run()

    async def expire(self) -> None:
        """Tell when a namespace has stayed for long enough, until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            if any(end <= self._clock.monotonic() for end in self._until.values()):
                self._tell()

    async def listing(self) -> None:
        self._listed = {}

    async def listed(self, head: HeadMeta, item: msgspec.Raw) -> None:
        if metadata_of(item).deletion_timestamp is None:  # one on its way out injects nothing any more
            self._listed[head.uid] = head.namespace

    async def complete(self, version: str) -> None:
        self._complete = True
        self._see(self._listed)

    async def event(self, kind: str, head: HeadMeta, item: msgspec.Raw) -> None:
        living = {uid: namespace for uid, namespace in self._living.items() if uid != head.uid}
        if kind != "DELETED" and metadata_of(item).deletion_timestamp is None:
            living[head.uid] = head.namespace
        self._see(living)

    async def progress(self, version: str) -> None:
        """Nothing new."""

    def state(self, trouble: str) -> None:
        """Until it is known what there is, what is armed stays."""
        if trouble:
            structlog.get_logger().info("cannot follow PersistentPodStates", why=trouble)

    def _see(self, living: dict[str, str]) -> None:
        before, self._living = set(self._living.values()), living
        if before != set(living.values()):
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
