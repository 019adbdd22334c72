"""Workloads of kinds that administrators name in a ConfigMap (persistentpodstate.md §7).

Nobody knows these kinds before, so they are not on the bus: each is looked up in the apiserver's discovery, then listed
and watched directly, for as long as the ConfigMap names it. The right to do so is for administrators to grant; where it
is missing, that is said, and everything else goes on.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec
import structlog

from flotilla_common.api.documents import Json, mappings, text
from flotilla_common.api.kinds.persistentpodstate.whitelist import CustomWorkload
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.mirror.direct_source import DirectSource
from flotilla_common.mirror.intake import Intake
from flotilla_common.mirror.table import Table
from flotilla_statefulset.persistentpodstate.workloads import NumberedWorkload

LOOK_SECONDS = 2.0
"""Between two looks at what is to be followed, and at what could not be."""

GroupKind = tuple[str, str]
Listener = Callable[[Resource, NumberedWorkload | None, NumberedWorkload | None], None]


class Followed(DirectSource):
    """The objects of one kind, and why there are none yet."""

    def __init__(self, api: Api, resource: Resource, clock: Clock, on_synced: Callable[[], None]) -> None:
        self.resource = resource
        self.table = Table[NumberedWorkload]()
        self.refusal = ""
        super().__init__(api, Intake(resource, NumberedWorkload, self.table), clock, on_synced)

    def state(self, trouble: str) -> None:
        """The apiserver refuses, or answers again."""
        if trouble and trouble != self.refusal:
            structlog.get_logger().warning("cannot follow a workload", kind=self.resource.kind, why=trouble)
        self.refusal = trouble


class CustomKinds:
    """What is followed, kind by kind."""

    def __init__(
        self,
        api: Callable[[], Api],
        clock: Clock,
        *,
        wanted: Callable[[], Collection[CustomWorkload]],
        listener: Listener,
        changed: Callable[[GroupKind], None],
    ) -> None:
        """`wanted`: the kinds that the ConfigMap names now; `listener` hears of their objects; `changed` is told of a
        kind that is, or is no longer, followed."""
        self._api = api
        self._clock = clock
        self._wanted = wanted
        self._listener = listener
        self._changed = changed
        self._followed: dict[GroupKind, Followed] = {}
        self._unknown: dict[GroupKind, str] = {}  # kinds that cannot be found in the discovery, and why

    def tables(self) -> Iterator[tuple[Resource, Table[NumberedWorkload]]]:
        """The kinds whose objects are all known."""
        return ((one.resource, one.table) for one in self._followed.values() if one.synced)

    def trouble(self, kind: GroupKind) -> str:
        """Why the objects of the kind are not known; empty if they are."""
        followed = self._followed.get(kind)
        name = f"{kind[1]} of {kind[0] or 'core'}"
        if followed is None:
            return self._unknown.get(kind) or f"no ConfigMap names {name}, or it is looked up just now"
        return "" if followed.synced else followed.refusal or f"{name} is being listed"

    async def run(self) -> None:
        """Follow what is wanted until cancelled."""
        try:
            while True:
                wanted = {(one.group, one.kind): one for one in self._wanted()}
                await self._drop(self._followed.keys() - wanted.keys())
                await self._take_up(wanted)
                for followed in list(self._followed.values()):
                    await followed.tend()
                await self._clock.sleep(LOOK_SECONDS)
        finally:
            for followed in self._followed.values():
                await followed.stop()

    async def _drop(self, kinds: Collection[GroupKind]) -> None:
        for kind in kinds:
            await self._followed.pop(kind).stop()
            self._changed(kind)

    async def _take_up(self, wanted: Mapping[GroupKind, CustomWorkload]) -> None:
        self._unknown = {kind: why for kind, why in self._unknown.items() if kind in wanted}
        for kind in wanted.keys() - self._followed.keys():
            try:
                resource = await self._discover(wanted[kind])
            except (ApiError, Unreachable, ValueError) as error:
                self._cannot_find(kind, str(error))
            else:
                await self._follow(kind, resource)

    async def _follow(self, kind: GroupKind, resource: Resource) -> None:
        followed = Followed(self._api(), resource, self._clock, lambda: self._changed(kind))
        followed.table.listen(lambda old, new: self._listener(resource, old, new))
        self._followed[kind] = followed
        self._unknown.pop(kind, None)
        await followed.start()

    def _cannot_find(self, kind: GroupKind, why: str) -> None:
        if self._unknown.get(kind) != why:
            structlog.get_logger().warning("cannot find a kind of workloads", kind=kind[1], group=kind[0], why=why)
            self._unknown[kind] = why
            self._changed(kind)

    async def _discover(self, workload: CustomWorkload) -> Resource:
        """The kind as the apiserver serves it. Raises ValueError if it does not, ApiError, Unreachable."""
        group, version, kind = workload.group, workload.version, workload.kind
        path = Resource(group, version, "", kind).path().rstrip("/")
        document = msgspec.json.decode(await self._api().raw("GET", path), type=Json)
        for served in mappings(document.get("resources")):
            plural = text(served.get("name"))
            if served.get("kind") == kind and served.get("namespaced") and "/" not in plural:
                return Resource(group, version, plural, kind)
        raise ValueError(f"{group}/{version} serves no namespaced kind {kind}")
