"""Tables of chosen names: reads from the apiserver, notifications, and removals."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.bus.interface import Bus
from flotilla_common.kube.interface import PAGE_SIZE, Api, ApiError, Page, WatchEvent
from flotilla_common.kube.reflector import NAMED_PAGE_SIZE
from flotilla_common.mirror.feed import Followed, NamedFeed, Reader
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.support.no_streams import NoStreams
from tests.unit.mirror.test_direct_reading import raw
from tests.unit.mirror.test_mirror import Thing, body


class FakeApi(NoStreams):
    """Every name has its LIST and its watch."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.watches: dict[str, asyncio.Queue[WatchEvent]] = {}
        self.asked: list[tuple[object, ...]] = []
        self.refusal: ApiError | None = None

    async def list(
        self, resource: object, namespace: str, *, field_selector: str, limit: int, token: str, **_: object
    ) -> Page:
        self.asked.append((field_selector, limit))
        if self.refusal is not None:
            raise self.refusal
        return self.pages.get(field_selector.rpartition("=")[2], Page([], "5"))

    async def watch(
        self, resource: object, version: str, *, namespace: str, field_selector: str, timeout: float, **_: object
    ) -> AsyncGenerator[WatchEvent]:
        self.asked.append((field_selector, version))
        events = self.watches.setdefault(field_selector.rpartition("=")[2], asyncio.Queue())
        while True:
            yield await events.get()


class Bench:
    """A mirror with pods of chosen names; `wanted` are those that its reader needs."""

    def __init__(self) -> None:
        self.api, self.clock = FakeApi(), FakeClock()
        self.mirror = Mirror(api=cast("Api", self.api), bus=cast("Bus", FakeBus()), clock=self.clock)
        self.table: Table[Thing] = self.mirror.add(POD, Thing, named=True)
        self.wanted: set[str] = {"a", "b"}
        self.told: list[str] = []
        self.feed: NamedFeed = self.mirror.named(POD, Reader(lambda: self.wanted, self.told.append))

    async def follow(self, *names: str) -> list[Followed]:
        """Ask, and again when there was time for an answer."""
        for name in names:
            self.feed.follow(name)
        await turns()
        return [self.feed.follow(name) for name in names]

    @property
    def held(self) -> set[str]:
        return {obj.metadata.uid for obj in self.table}


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_name_is_listed_and_watched_in_all_namespaces_once_it_is_asked_for() -> None:
    bench = Bench()
    bench.api.pages["a"] = Page([raw("a", 1, uid="one"), raw("a", 2, uid="two", namespace="elsewhere")], "5")
    assert bench.feed.follow("a") == Followed(synced=False)
    assert bench.api.asked == []
    assert await bench.follow("a") == [Followed(synced=True)]
    assert bench.api.asked == [("metadata.name=a", NAMED_PAGE_SIZE), ("metadata.name=a", "5")]
    assert bench.held == {"one", "two"}
    assert bench.told == ["a"]
    bench.api.watches["a"].put_nowait(WatchEvent("DELETED", raw("a", 6, uid="one")))
    await turns()
    assert bench.held == {"two"}


async def test_a_list_of_one_name_says_nothing_about_others() -> None:
    bench = Bench()
    bench.api.pages["a"] = Page([raw("a", 1)], "5")
    await bench.follow("a")
    bench.mirror.written(POD, body("a", 3, uid="gone"))
    await bench.follow("b")
    assert bench.held == {"gone"}
    assert (await bench.follow("a", "b")) == [Followed(synced=True)] * 2


async def test_what_is_written_under_a_name_that_nobody_follows_is_not_held() -> None:
    bench = Bench()
    await bench.follow("a")
    assert bench.mirror.written(POD, body("a", 3, uid="one")) is not None
    assert bench.mirror.written(POD, body("b", 4, uid="two")) is None
    assert await bench.mirror.read(POD, "default", "b") is None
    assert bench.held == {"one"}


async def test_what_cannot_be_read_of_one_name_is_not_forgotten_by_a_list_of_another() -> None:
    bench = Bench()
    bench.api.pages["a"] = Page([raw("a", 1, size="none")], "5")
    await bench.follow("a", "b")
    assert [one.name for one in bench.mirror.undecodable(POD)] == ["a"]


async def test_a_name_that_nobody_wants_is_let_go_and_can_come_again() -> None:
    bench = Bench()
    bench.api.pages = {name: Page([raw(name, 1)], "5") for name in ("a", "b")}
    heard: list[object] = []
    await bench.follow("a", "b")
    bench.table.listen(lambda *change: heard.append(change))
    bench.wanted = {"b"}
    await bench.feed.tick()
    assert bench.held == {"u-b"}
    assert heard == []
    bench.wanted = {"a", "b"}
    assert await bench.follow("a") == [Followed(synced=True)]
    assert bench.held == {"u-a", "u-b"}
    assert [asked for asked in bench.api.asked if asked == ("metadata.name=a", NAMED_PAGE_SIZE)] != []


async def test_a_name_that_one_of_several_readers_wants_stays() -> None:
    bench = Bench()
    bench.feed.join(Reader(lambda: ["c"], bench.told.append))
    await bench.follow("a", "c")
    bench.wanted = set()
    await bench.feed.tick()
    assert bench.feed.follow("c") == Followed(synced=True)
    assert bench.feed.follow("a") == Followed(synced=False)
    assert bench.told == ["a", "a", "c", "c"]


async def test_a_refusal_is_told_and_so_is_its_end() -> None:
    bench = Bench()
    bench.api.refusal = ApiError(403, "Forbidden", "not you")
    (followed,) = await bench.follow("a")
    assert followed == Followed(synced=False, trouble="the apiserver refuses pods: not you")
    assert bench.told == ["a"]
    bench.api.refusal = None
    assert await bench.follow("a") == [Followed(synced=True)]
    assert set(bench.told) == {"a"}


async def test_nobody_waits_for_names() -> None:
    bench = Bench()
    assert (bench.feed.synced, bench.feed.lag, bench.feed.trouble, bench.feed.direct) == (True, 0.0, "", True)
    await bench.follow("a")
    bench.clock.time += 7
    assert bench.mirror.lag(POD) == 7.0


async def test_watches_end_with_the_mirror_and_begin_anew_when_they_fail() -> None:
    bench = Bench()
    await bench.follow("a")
    bench.api.watches["a"].put_nowait(WatchEvent("ADDED", raw("a", 6, uid=3)))
    await turns()
    await bench.feed.tick()
    assert "ValidationError" in bench.feed.trouble
    await turns()
    assert bench.api.asked[-1] == ("metadata.name=a", "5")
    bench.api.watches["a"].put_nowait(WatchEvent("ADDED", raw("a", 7)))
    await turns()
    assert (bench.held, bench.feed.trouble) == ({"u-a"}, "")
    await bench.feed.stop()
    bench.api.watches["a"].put_nowait(WatchEvent("DELETED", raw("a", 8)))
    await turns()
    assert bench.held == {"u-a"}


async def test_one_consistent_list_of_a_name() -> None:
    bench = Bench()
    await bench.follow("a", "b")
    for name in ("a", "b"):
        bench.mirror.written(POD, body(name, 6))
    bench.api.pages["a"] = Page([raw("a", 7, uid="new")], "8")
    await bench.mirror.read_owned(POD, name="a")
    assert bench.api.asked[-1] == ("metadata.name=a", PAGE_SIZE)
    assert bench.held == {"new", "u-b"}


def test_one_resource_is_mirrored_in_one_way() -> None:
    bench = Bench()
    assert bench.mirror.add(POD, Thing, named=True) is bench.table
    for how in ({"namespace": "x"}, {}):
        options: dict[str, Any] = how
        with pytest.raises(RuntimeError, match="mirrored already"):
            bench.mirror.add(POD, Thing, **options)
    bench.mirror.add(CLAIM, Thing)
    with pytest.raises(KeyError):
        bench.mirror.named(CLAIM, Reader(list, bench.told.append))
