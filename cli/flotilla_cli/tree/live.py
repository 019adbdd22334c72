"""What the tree shows, read from the apiserver and kept fresh by watches."""

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec
from rich.console import RenderableType

from flotilla_cli.diagnosis.closeup import Surveyor
from flotilla_cli.diagnosis.findings import worth_a_look
from flotilla_cli.diagnosis.scope import basis_of
from flotilla_cli.picture import Gone, Picture
from flotilla_cli.tree.facts import PodFacts
from flotilla_cli.tree.render import render
from flotilla_cli.tree.view import SetView, view
from flotilla_cli.tree.workload import Reader, Workload
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import POD, REVISION, Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.workload.causes import Around

PAGE = 500

LOOK_SECONDS = 5.0
"""Between two looks at events and nodes."""

Take = Callable[[bytes | msgspec.Raw], None]


class LiveTree(Picture):
    """The present state of one set, its pods and its revisions."""

    def __init__(self, reader: Reader, api: Api, clock: Clock, resource: Resource, namespace: str, name: str) -> None:
        super().__init__(api, clock, resource, namespace, name)
        self._reader = reader
        self._set: Workload | None = None
        self._pods: dict[str, Pod] = {}
        self._basis = Around()
        self._arounds: dict[str, Around] = {}  # of the pods that were looked at closely
        self._revisions: dict[str, ControllerRevision] = {}

    async def load(self) -> None:
        self._take_set(await self._api.get(self._resource, self._namespace, self._name))
        await self._list(POD, self._take_pod, self._pods.clear)
        await self._list(REVISION, self._take_revision, self._revisions.clear)
        await self._look_closer()

    async def keep(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(self._resource, self._take_set, lambda: None))
            group.create_task(self._follow(POD, self._take_pod, self._pods.clear))
            group.create_task(self._follow(REVISION, self._take_revision, self._revisions.clear))
            group.create_task(self._keep_looking())

    def view(self) -> SetView:
        if self._set is None:
            raise Gone
        pods = [PodFacts(pod, self._arounds.get(name, self._basis)) for name, pod in self._pods.items()]
        return view(self._set, pods, list(self._revisions.values()), self.why)

    @property
    def parts(self) -> int:
        """The revisions, one table each."""
        return max(len(self.view().revisions), 1)

    def drawing(self, now: datetime, lines: int = 0) -> RenderableType:
        return render(self.view(), now, lines)

    async def _keep_looking(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self._look_closer()
            except Unreachable:
                continue  # whoever follows the objects says so
            self.changed.set()

    async def _look_closer(self) -> None:
        """What surrounds a few of the pods that do not serve; what may not be read is done without."""
        surveyor, now = Surveyor(self._api), self._clock.now()
        self._basis = msgspec.structs.replace(self._basis, now=now, silent=await surveyor.silent_nodes(now))
        looked = worth_a_look(list(self._pods.values()), self._basis)
        arounds = await asyncio.gather(*(surveyor.around(pod, self._basis) for pod in looked))
        self._arounds = {pod.metadata.name: around for pod, around in zip(looked, arounds, strict=True)}

    async def _list(self, resource: Resource, take: Take, clear: Callable[[], None]) -> str:
        token, first = "", True
        while True:
            page = await self._api.list(resource, self._namespace, limit=PAGE, token=token)
            if first:
                clear()
            for raw in page.items:
                take(raw)
            first, token = False, page.next_token
            if not token:
                return page.resource_version

    async def _follow(self, resource: Resource, take: Take, clear: Callable[[], None]) -> None:
        """LIST and WATCH, again and again: the watch may break, the object must be seen as it is."""
        while True:
            try:
                version = await self._list(resource, take, clear)
                self.trouble = ""
                async for event in self._api.watch(resource, version, namespace=self._namespace):
                    if event.type == "DELETED":
                        self._drop(resource, event.object)
                    elif event.type in ("ADDED", "MODIFIED"):
                        take(event.object)
                    self.changed.set()
            except (ApiError, Unreachable) as error:
                await self._pause(error)

    def _take_set(self, raw: bytes | msgspec.Raw) -> None:
        if metadata_of(raw).name == self._name:
            self._set = self._reader(raw)
            basis = basis_of(self._resource, bytes(raw), self._clock.now())
            self._basis = msgspec.structs.replace(basis, silent=self._basis.silent)

    def _take_pod(self, raw: bytes | msgspec.Raw) -> None:
        meta = metadata_of(raw)
        if self._owns(meta):
            self._pods[meta.name] = msgspec.json.decode(raw, type=Pod)
        else:
            self._pods.pop(meta.name, None)

    def _take_revision(self, raw: bytes | msgspec.Raw) -> None:
        meta = metadata_of(raw)
        if self._owns(meta):
            # A copy: the revision keeps its data raw, and a slice would hold on to the whole page it came in.
            self._revisions[meta.name] = msgspec.json.decode(bytes(raw), type=ControllerRevision)

    def _drop(self, resource: Resource, raw: msgspec.Raw) -> None:
        name = metadata_of(raw).name
        if resource == POD:
            self._pods.pop(name, None)
        elif resource == REVISION:
            self._revisions.pop(name, None)
        elif name == self._name:
            raise Gone

    def _owns(self, meta: ObjectMeta) -> bool:
        assert self._set is not None
        return any(reference.uid == self._set.metadata.uid for reference in meta.owner_references)
