"""A mirror of some pods: those with sidecars, those of CloneSets, and those near rules."""

import asyncio
from collections.abc import Iterable
from typing import cast

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Model, ObjectMeta, controller_of
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import affiliation_of, outline
from flotilla_common.bus.interface import Bus
from flotilla_common.mirror.bus_source import BusSource
from flotilla_common.mirror.bus_sources import BusSources
from flotilla_common.mirror.feed import Feed
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.scope import Near, Needs
from flotilla_common.mirror.table import Table
from tests.support.fake_bus import FakeBus, FakeFollow
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json

SPEC = subjects.kube_stream(POD)
SETS = "CloneSet_apps_kruise_io"


class Rule(Model, frozen=True):
    """An object that needs the pods of its namespace."""

    metadata: ObjectMeta = ObjectMeta()


def pod(
    name: str,
    version: int,
    owner: str = "",
    *,
    namespace: str = "shop",
    sidecars: bool = False,
    uid: str = "",
    broken: bool = False,
) -> Json:
    """Return a pod of a CloneSet, or of nothing; one with extras; one that does not fit its type."""
    controller = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": owner, "uid": f"u-{owner}"}
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"u-{name}",
        "resourceVersion": str(version),
        "annotations": {"kruise.io/sidecarset-injected-list": "log"} if sidecars else {},
        "ownerReferences": [controller | {"controller": True}] if owner else [],
    }
    return {"metadata": metadata, "spec": {}, "status": {"phase": 1 if broken else "Running"}}


def encode(document: Json) -> bytes:
    return msgspec.json.encode(document)


def subject_of(document: Json) -> str:
    meta = document["metadata"]
    return subjects.pod(meta["namespace"], meta["name"], affiliation_of(outline(encode(document))))


def here(rule: Rule) -> Iterable[str]:
    return [rule.metadata.namespace]


async def settle() -> None:
    """Let other tasks run."""
    for _ in range(20):
        await asyncio.sleep(0)


class Scoped:
    """A mirror that needs some pods, and the watcher that publishes all."""

    def __init__(self, needs: Needs | None = None) -> None:
        self.bus, self.api, self.clock = FakeBus(), FakeApi(version=100), FakeClock()
        self.mirror = Mirror(api=self.api.api, bus=cast("Bus", self.bus), clock=self.clock, fallback_after=30)
        self.rules = Table[Rule]()
        self.table = self.mirror.add(POD, Pod, needs=Needs(near=(Near(CLAIM, self.rules, here),)))
        if needs is not None:
            self.mirror.add(POD, Pod, needs=needs)
        self.feed = cast("Feed", self.mirror._feeds[POD])
        self.decoder = self.mirror._decoders[POD]
        self.sources = cast("BusSources", self.feed._bus)
        self.heard: list[tuple[str, bool]] = []
        """Names of changed pods, and whether they are there."""
        self.table.listen(self._hear)
        self._rules = 0

    def _hear(self, old: Pod | None, new: Pod | None) -> None:
        changed = new or old
        assert changed is not None
        self.heard.append((changed.metadata.name, new is not None))

    async def start(self) -> None:
        await self.bus.ensure_stream(SPEC)
        await self.feed.start()

    async def tick(self, time: float) -> None:
        self.clock.time = time
        await self.feed.tick()
        await settle()

    async def beats(self, time: float) -> None:
        """Let time pass while the watcher repeats its marker."""
        while self.clock.time < time:
            self.clock.time = min(self.clock.time + 5, time)
            await self.mark("synced", 50)
            await self.tick(self.clock.time)

    def behind(self, group: str) -> FakeFollow:
        """Return the follow of a group, which receives nothing until `catch_up`."""
        source = self.source(group)
        found = next(one for one in self.follows if one is source._follow)
        found.healthy = False
        return found

    def catch_up(self, follow: FakeFollow) -> None:
        follow.healthy = True
        self.bus.replay(follow)

    def need(self, namespace: str) -> None:
        """Add a rule that needs the pods of the namespace."""
        self._rules += 1
        meta = ObjectMeta(name="rule", namespace=namespace, uid=f"u-{self._rules}", resource_version=str(self._rules))
        self.rules.apply(Rule(metadata=meta))

    def release(self, namespace: str) -> None:
        """Remove that rule."""
        self.rules.remove(namespace, "rule")

    async def say(
        self, document: Json, op: str = "MODIFIED", epoch: str = "e1", subject: str = "", **more: str
    ) -> None:
        meta = document["metadata"]
        headers = {"op": op, "rv": meta["resourceVersion"], "uid": meta["uid"], "epoch": epoch} | more
        await self.bus.publish(subject or subject_of(document), encode(document), headers)

    async def move(self, before: Json, after: Json, epoch: str = "e1") -> None:
        """Publish the pod on its new subject, then the message on its former one."""
        await self.say(after, epoch=epoch)
        await self.move_away(before, after, epoch)

    async def move_away(self, before: Json, after: Json, epoch: str = "e1") -> None:
        identity = {
            "metadata": {key: after["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
        }
        await self.say(identity, "MOVED", epoch, subject_of(before), to=subject_of(after))

    async def mark(self, state: str, version: int = 0, epoch: str = "e1", layout: int = subjects.LAYOUT) -> None:
        marker = subjects.Marker(epoch=epoch, state=state, rv=str(version), layout=layout)
        await self.bus.publish(subjects.kube_marker(POD), msgspec.json.encode(marker), {"epoch": epoch})

    async def publish(self, epoch: str, version: int, *documents: Json, layout: int = subjects.LAYOUT) -> None:
        """Publish a complete LIST."""
        await self.mark("listing", epoch=epoch, layout=layout)
        for document in documents:
            await self.say(document, "ADDED", epoch)
        await self.mark("synced", version, epoch, layout)

    @property
    def held(self) -> dict[str, int]:
        return {one.metadata.name: int(one.metadata.resource_version) for one in self.table}

    @property
    def owners(self) -> dict[str, str]:
        controllers = {one.metadata.name: controller_of(one.metadata) for one in self.table}
        return {name: one.name for name, one in controllers.items() if one is not None}

    @property
    def follows(self) -> list[FakeFollow]:
        """The follows that have not ended."""
        return [one for one in self.bus.follows if one.healthy]

    def source(self, group: str) -> BusSource:
        """Return the newest source of a group."""
        newest = self.sources._groups[group].newest
        assert newest is not None
        return newest.shards[0]
