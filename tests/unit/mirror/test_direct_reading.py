"""Tables that are read from the apiserver: by a LIST and WATCH of our own, and by single consistent LISTs."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.bus.interface import Bus
from flotilla_common.kube.interface import PAGE_SIZE, Api, ApiError, Page, WatchEvent
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.mirror.bus_sources import BusSources
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.direct_source import DirectSource
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.support.no_streams import NoStreams
from tests.unit.mirror.test_mirror import Thing, body


def head(name: str, version: int = 0, uid: str = "") -> HeadMeta:
    return HeadMeta(name=name, namespace="ns", uid=uid or f"u-{name}", resource_version=str(version or ""))


def raw(name: str, version: int, **more: Any) -> msgspec.Raw:
    return msgspec.Raw(body(name, version, **more))


class Sourced:
    """A direct source whose reflector the test plays."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.table = Table[Thing]()
        self.decoder = ObjectDecoder(POD, Thing, self.table)
        self.synced = 0
        self.source = DirectSource(cast("Api", None), self.decoder, self.clock, self._on_synced, "ns")

    def _on_synced(self) -> None:
        self.synced += 1

    async def list(self, version: int, *objects: tuple[str, int]) -> None:
        await self.source.listing("pages")
        for name, at in objects:
            await self.source.listed(head(name, at), raw(name, at))
        await self.source.complete(str(version))

    @property
    def held(self) -> dict[str, str]:
        return {obj.metadata.name: obj.metadata.resource_version for obj in self.table}


async def test_a_list_is_complete_once_and_says_what_is_gone() -> None:
    made = Sourced()
    assert not made.source.synced
    await made.list(10, ("a", 1), ("b", 2))
    assert made.source.synced
    made.table.apply(msgspec.json.decode(body("mine", 25), type=Thing))
    await made.list(20, ("b", 2), ("c", 15))
    assert made.held == {"b": "2", "c": "15", "mine": "25"}
    assert made.synced == 1


async def test_a_list_that_began_anew_forgets_what_the_first_one_had() -> None:
    made = Sourced()
    await made.source.listing("pages")
    await made.source.listed(head("a", 1), raw("a", 1))
    await made.list(10, ("b", 2))
    assert made.held == {"b": "2"}


async def test_an_object_that_is_deleted_within_the_list_is_gone() -> None:
    made = Sourced()
    await made.list(10, ("a", 1))
    await made.source.listing("streamed")
    for name, at in (("a", 1), ("b", 12), ("b", 14)):
        await made.source.listed(head(name, at), raw(name, at))
    await made.source.unlisted(head("a", 13), raw("a", 13))
    await made.source.complete("20")
    assert made.held == {"b": "14"}
    made.table.apply(msgspec.json.decode(body("a", 12), type=Thing))
    assert made.held == {"b": "14"}, "a late message revives nothing"


async def test_a_list_without_a_version_takes_nothing_away() -> None:
    made = Sourced()
    await made.list(10, ("a", 1))
    await made.source.listing("pages")
    await made.source.complete("")
    assert made.held == {"a": "1"}


async def test_what_cannot_be_read_is_gone_when_the_next_list_lacks_it() -> None:
    made = Sourced()
    made.decoder.take(raw("odd", 5, size="wrong"))
    await made.list(4)
    assert made.decoder.undecodable.keys() == {"u-odd"}
    await made.source.listing("pages")
    await made.source.listed(head("odd", 5), raw("odd", 5, size="wrong"))
    await made.source.complete("9")
    assert made.decoder.undecodable.keys() == {"u-odd"}
    await made.list(9)
    assert not made.decoder.undecodable


async def test_events_move_the_table_and_prove_that_it_is_up_to_date() -> None:
    made = Sourced()
    await made.list(10, ("a", 1))
    for at, step in enumerate(
        [
            made.source.event("MODIFIED", head("a", 11), raw("a", 11)),
            made.source.event("DELETED", head("a", 12), raw("a", 12)),
            made.source.progress("13"),
        ],
        start=1,
    ):
        made.clock.time = float(at)
        await step
        assert made.source.last_update == at
    assert made.held == {}
    made.clock.time = 9.0
    await made.list(20)
    assert made.source.last_update == 9.0


async def test_trouble_is_no_proof_of_being_up_to_date() -> None:
    made = Sourced()
    await made.source.stop()  # not begun: nothing to stop
    await made.source.start()
    began = made.source.last_update
    made.clock.time += 5.0
    made.source.state("the apiserver is unreachable")
    assert made.source.last_update == began
    await made.source.stop()


class PagedApi:
    """Serves pages in order, and records requests."""

    def __init__(self, *pages: Page) -> None:
        self.pages = list(pages)
        self.asked: list[tuple[object, ...]] = []
        self.error: ApiError | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    async def list(
        self, resource: object, namespace: str, *, field_selector: str, limit: int, token: str, **_: object
    ) -> Page:
        self.asked.append((resource, namespace, limit, token))
        self.meanwhile()
        return self.pages.pop(0)

    async def get(self, resource: object, namespace: str, name: str) -> bytes:
        self.asked.append((resource, namespace, name))
        assert self.error is not None
        raise self.error


def mirrored(api: PagedApi) -> tuple[Mirror, Table[Thing]]:
    mirror = Mirror(api=cast("Api", api), bus=cast("Bus", FakeBus()), clock=FakeClock())
    return mirror, mirror.add(POD, Thing)


def names(table: Table[Thing]) -> set[str]:
    return {obj.metadata.name for obj in table}


async def test_all_pages_are_one_list_at_the_version_of_the_last() -> None:
    api = PagedApi(Page([raw("a", 1)], "", "more"), Page([raw("b", 2)], "50", ""))
    mirror, table = mirrored(api)
    mirror.written(POD, body("old", 50))
    api.meanwhile = lambda: mirror.written(POD, body("new", 51))
    await mirror.read_owned(POD, "ns")
    assert names(table) == {"a", "b", "new"}
    assert api.asked == [(POD, "ns", PAGE_SIZE, ""), (POD, "ns", PAGE_SIZE, "more")]


async def test_a_list_of_one_namespace_says_nothing_about_others() -> None:
    mirror, table = mirrored(PagedApi(Page([], "50", ""), Page([], "50", "")))
    mirror.written(POD, body("a", 1))
    await mirror.read_owned(POD, "elsewhere")
    assert names(table) == {"a"}
    await mirror.read_owned(POD)
    assert names(table) == set()


async def test_a_list_without_a_version_is_older_than_everything() -> None:
    mirror, table = mirrored(PagedApi(Page([], "", "")))
    mirror.written(POD, body("a", 1))
    await mirror.read_owned(POD)
    assert names(table) == {"a"}


async def test_only_absence_takes_away_what_is_held() -> None:
    api = PagedApi()
    mirror, table = mirrored(api)
    mirror.written(POD, body("a", 1))
    api.error = ApiError(500, "InternalError", "no quorum")
    with pytest.raises(ApiError, match="no quorum"):
        await mirror.read(POD, "ns", "a")
    assert names(table) == {"a"}
    api.error = ApiError(404, "NotFound", "")
    assert await mirror.read(POD, "ns", "nobody") is None
    assert await mirror.read(POD, "ns", "a") is None
    assert names(table) == set()
    assert api.asked[-1] == (POD, "ns", "a")


async def test_an_absent_object_leaves_its_successor_alone() -> None:
    api = PagedApi()
    mirror, table = mirrored(api)
    mirror.written(POD, body("a", 1, uid="first"))
    api.error = ApiError(404, "NotFound", "")
    mirror.deleted(POD, "ns", "a", "first")
    mirror.written(POD, body("a", 9, uid="second"))
    mirror.deleted(POD, "ns", "a", "first")
    assert names(table) == {"a"}


async def test_what_has_no_table_is_not_ours() -> None:
    mirror, table = mirrored(PagedApi())
    assert mirror.written(CLAIM, body("a", 1)) is None
    mirror.deleted(CLAIM, "ns", "a", "u-a")
    assert names(table) == set()
    assert isinstance(mirror.written(POD, body("a", 1)), Thing)
    assert list(mirror.resources) == [POD]


class Health:
    """The mirror's reports of its health."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bool, str]] = []

    def ready(self, name: str, ok: bool, why: str = "") -> None:
        self.said.append((name, ok, why))

    def alive(self, name: str, ok: bool, why: str = "") -> None:
        self.broken = why


async def test_the_mirror_says_what_it_waits_for() -> None:
    health = Health()
    mirror = Mirror(api=cast("Api", PagedApi()), bus=cast("Bus", FakeBus()), clock=FakeClock(), health=health)
    mirror.add(POD, Thing)
    mirror.add(CLAIM, Thing)
    mirror._check_synced()
    assert health.said == [("mirror", False, "waiting for pods, persistentvolumeclaims")]
    for feed in mirror._feeds.values():
        await feed.start()
        bus = feed._bus  # type: ignore[union-attr]
        sharded = bus._sources() if isinstance(bus, BusSources) else []
        for source in [shard for one in sharded for shard in one.shards] or [bus]:
            source.synced = True
    mirror._check_synced()
    assert health.said[-1] == ("mirror", True, "")
    await mirror.synced(0.01)


def test_a_table_has_the_indexes_that_were_asked_for() -> None:
    mirror = Mirror(api=cast("Api", PagedApi()), bus=cast("Bus", FakeBus()), clock=FakeClock())
    table = mirror.add(POD, Thing, {"size": lambda thing: [thing.size]})
    mirror.written(POD, body("a", 1, size=3))
    assert [thing.metadata.name for thing in table.by_index("size", 3)] == ["a"]


async def test_a_watch_that_ended_begins_again_and_counts_as_broken_until_it_works() -> None:
    """Also of a private table, which the bus never feeds: secrets."""

    class BreakingApi(NoStreams, PagedApi):
        broken = True

        async def list(self, resource: Any, namespace: str = "", **options: Any) -> Page:
            if self.broken:
                raise KeyError("metadata")
            return Page([raw("a", 1)], "10")

        async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent]:
            await asyncio.Event().wait()
            yield WatchEvent("", msgspec.Raw(b""))

    health, api, clock = Health(), BreakingApi(), FakeClock()
    mirror = Mirror(api=cast("Api", api), bus=cast("Bus", FakeBus()), clock=clock, health=health)
    mirror.add(POD, Thing, namespace="ns")
    feed = mirror._feeds[POD]
    await feed.start()
    for _ in range(3):
        await asyncio.sleep(0)
    await feed.tick()
    mirror._check_synced()
    assert health.broken == "pods: KeyError: 'metadata'"
    api.broken = False
    for _ in range(20):
        await asyncio.sleep(0)
        await feed.tick()
    mirror._check_synced()
    assert health.broken == ""
    assert feed.synced
    await feed.stop()
