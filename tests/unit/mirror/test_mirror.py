"""The mirror's ways in: the bus with its epochs, our own writes, direct reads, objects that do not decode."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import NODE, POD, SECRET
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus
from flotilla_common.kube.interface import Api, ApiError, Page, WatchEvent
from flotilla_common.kube.reflector import decode_head
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.table import Table, VersionsWentBack
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.support.no_streams import NoStreams

SPEC = subjects.kube_stream(POD)


class Thing(Model, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    size: int = 0


def body(name: str, version: int, uid: str = "", size: object = 0, namespace: str = "ns") -> bytes:
    meta = {"name": name, "namespace": namespace, "uid": uid or f"u-{name}", "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": meta, "size": size})


class FakeApi(NoStreams):
    """Holds objects by name; lists are consistent at `version`."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.version = 100
        self.meanwhile: Callable[[], object] = lambda: None

    async def get(self, resource: object, namespace: str, name: str) -> bytes:
        if name not in self.objects:
            raise ApiError(404, "NotFound", "")
        return self.objects[name]

    async def list(self, resource: object, namespace: str = "", **_: Any) -> Page:
        self.meanwhile()
        return Page([msgspec.Raw(one) for one in self.objects.values()], str(self.version))

    async def watch(self, *_: Any, **__: Any) -> AsyncGenerator[WatchEvent]:
        await asyncio.Event().wait()
        yield WatchEvent("", msgspec.Raw(b""))


class Bench:
    def __init__(self) -> None:
        self.bus, self.api, self.clock = FakeBus(), FakeApi(), FakeClock()
        self.mirror = Mirror(api=cast("Api", self.api), bus=cast("Bus", self.bus), clock=self.clock, fallback_after=30)
        self.table: Table[Thing] = self.mirror.add(POD, Thing)
        self.feed = self.mirror._feeds[POD]

    async def start(self) -> None:
        await self.bus.ensure_stream(SPEC)
        await self.feed.start()

    async def say(self, op: str, data: bytes, epoch: str = "e1", **headers: str) -> None:
        meta = msgspec.json.decode(data)["metadata"]
        headers |= {"op": op, "rv": meta["resourceVersion"], "uid": meta["uid"], "epoch": epoch}
        await self.bus.publish(subjects.kube(POD, "ns", meta["name"]), data, headers)

    async def mark(self, state: str, version: int = 0, epoch: str = "e1", count: int = 0) -> None:
        marker = subjects.Marker(epoch=epoch, state=state, rv=str(version), count=count)
        await self.bus.publish(subjects.kube_marker(POD), msgspec.json.encode(marker), {"epoch": epoch})

    async def publish(self, epoch: str, version: int, *bodies: bytes) -> None:
        await self.mark("listing", epoch=epoch)
        for data in bodies:
            await self.say("ADDED", data, epoch)
        await self.mark("synced", version, epoch)

    @property
    def held(self) -> dict[str, str]:
        return {obj.metadata.name: obj.metadata.resource_version for obj in self.table}


async def until(holds: Callable[[], bool]) -> None:
    """Let other tasks run until it holds."""
    for _ in range(100):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not come to hold")


@pytest.fixture
async def bench() -> Bench:
    made = Bench()
    await made.start()
    return made


async def test_synced_means_the_marker_came(bench: Bench) -> None:
    await bench.mark("listing")
    await bench.say("ADDED", body("a", 1))
    assert bench.held == {"a": "1"}
    with pytest.raises(TimeoutError):
        await bench.mirror.synced(0.01)
    await bench.mark("synced", 5)
    await bench.mirror.synced(0.01)


async def test_a_new_epoch_removes_what_it_lacks_but_nothing_newer(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 1), body("b", 2), body("c", 3))
    bench.mirror.written(POD, body("mine", 25))
    await bench.mark("listing", epoch="e2")
    await bench.say("ADDED", body("a", 1), "e2")
    assert bench.held.keys() == {"a", "b", "c", "mine"}
    await bench.mark("synced", 20, "e2")
    assert bench.held.keys() == {"a", "mine"}
    await bench.mark("synced", 99, "e2")  # repeated on bookmarks: no information about objects
    assert bench.held.keys() == {"a", "mine"}


async def test_a_late_joiner_ends_in_the_same_table(bench: Bench) -> None:
    await bench.publish("e1", 10, body("stale", 1), body("a", 2))
    await bench.publish("e2", 20, body("a", 2), body("b", 15))
    await bench.say("MODIFIED", body("b", 21), "e2")
    late = Bench()
    late.bus.streams = bench.bus.streams
    await late.feed.start()
    assert bench.held == {"a": "2", "b": "21"}
    await until(lambda: late.held == bench.held)  # the apiserver is read to check objects of the old epoch


async def test_objects_that_changed_after_the_marker_are_not_gone_when_a_stream_is_read_again(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 1), body("b", 2), body("gone", 3))
    bench.bus.wipe()
    await bench.bus.ensure_stream(SPEC)
    follow = bench.bus.follows.pop()
    await bench.publish("e2", 20, body("a", 1), body("b", 2))
    await bench.say("MODIFIED", body("b", 21), "e2")
    await bench.say("MODIFIED", body("a", 22), "e2")
    follow.on_reset()
    messages = list(bench.bus.streams[SPEC.name].messages.values())
    assert messages[0].subject == subjects.kube_marker(POD)
    for number, message in enumerate(messages, 1):
        follow.on_message(msgspec.structs.replace(message, pending=len(messages) - number))
    assert bench.held == {"a": "22", "b": "21"}


async def test_a_stream_is_not_synced_before_what_is_behind_its_marker(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 1))
    await bench.say("MODIFIED", body("a", 11))
    messages = list(bench.bus.streams[SPEC.name].messages.values())
    late = Bench()
    await late.feed.start()
    late.bus.follows[0].on_message(msgspec.structs.replace(messages[0], pending=1))
    assert not late.feed.synced
    late.bus.follows[0].on_message(messages[1])
    assert (late.feed.synced, late.held) == (True, {"a": "11"})


async def test_deletes_and_late_messages(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 1))
    await bench.say("DELETED", body("a", 11))
    await bench.say("MODIFIED", body("a", 5))
    assert bench.held == {}
    await bench.bus.publish(subjects.kube(POD, "ns", "x"), b"", {"op": "DELETED", "rv": "9", "uid": "", "epoch": "e1"})
    await bench.say("ADDED", body("a", 12, "second"))
    assert bench.held == {"a": "12"}


async def test_a_wiped_stream_takes_nothing_away_until_the_next_marker(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 1), body("b", 2))
    bench.bus.wipe()
    await bench.bus.ensure_stream(SPEC)
    bench.bus.follows[0].on_reset()
    assert bench.held.keys() == {"a", "b"}
    await bench.publish("e2", 20, body("b", 2))
    assert bench.held.keys() == {"b"}


async def test_a_large_object_is_fetched(bench: Bench) -> None:
    bench.api.objects["big"] = body("big", 7, size=3)
    await bench.say("ADDED", body("big", 7), oversize="true")
    for _ in range(5):
        await asyncio.sleep(0)
    assert bench.held == {"big": "7"}


async def test_what_does_not_decode_is_set_aside_and_never_counts_as_gone(bench: Bench) -> None:
    heard: list[str] = []
    bench.mirror.on_undecodable(
        POD, lambda undecodable: heard.append(f"{undecodable.name}@{undecodable.version}: {undecodable.error}")
    )
    await bench.publish("e1", 10, body("a", 1), body("b", 2))
    await bench.say("MODIFIED", body("a", 11, size="wrong"))
    await bench.say("MODIFIED", body("a", 11, size="wrong"))
    assert heard == ["a@11: Expected `int`, got `str` - at `$.size`"]
    assert bench.held == {"a": "1", "b": "2"}
    bench.api.objects = {"a": body("a", 11, size="wrong")}
    await bench.mirror.resync([POD])
    assert bench.held == {"a": "1"}
    await bench.say("MODIFIED", body("a", 12))
    assert bench.mirror.undecodable(POD) == []


async def test_our_own_writes_are_seen_at_once(bench: Bench) -> None:
    bench.mirror.written(POD, body("a", 30))
    await bench.publish("e1", 20, body("a", 3))
    assert bench.held == {"a": "30"}
    bench.mirror.deleted(POD, "ns", "a", "u-a")
    await bench.say("MODIFIED", body("a", 31))
    assert bench.held == {}


async def test_direct_reads(bench: Bench) -> None:
    bench.mirror.written(POD, body("a", 1))
    bench.api.objects = {"a": body("a", 2), "c": body("c", 50)}
    found = await bench.mirror.read(POD, "ns", "a")
    assert isinstance(found, Thing)
    del bench.api.objects["a"]
    assert await bench.mirror.read(POD, "ns", "a") is None
    assert bench.held == {}
    bench.mirror.written(POD, body("old", 90))
    reading = asyncio.create_task(bench.mirror.read_owned(POD, "ns"))
    bench.api.meanwhile = lambda: bench.mirror.written(POD, body("fresh", 150))
    await reading
    assert bench.held == {"c": "50", "fresh": "150"}
    with pytest.raises(VersionsWentBack, match="resourceVersion 150 was seen, and a LIST is at 100"):
        await bench.mirror.read_owned(POD, "ns")


async def test_silence_of_the_bus_starts_the_direct_source_and_its_return_stops_it(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 1))
    bench.clock.time = 29
    await bench.feed.tick()
    assert not bench.feed.direct
    bench.clock.time = 31
    bench.api.objects = {"b": body("b", 50)}
    await bench.feed.tick()
    for _ in range(20):
        await asyncio.sleep(0)
    assert bench.feed.direct
    assert bench.held == {"b": "50"}
    await bench.mark("synced", 60)
    await bench.feed.tick()
    assert not bench.feed.direct
    await bench.feed.stop()


async def test_a_whole_but_silent_bus_counts_as_long_as_the_marker_is_fresh(bench: Bench) -> None:
    for second in range(0, 100, 5):
        bench.clock.time = float(second)
        await bench.mark("synced", second)
        await bench.feed.tick()
    assert not bench.feed.direct
    assert bench.mirror.lag(POD) < 5
    bench.bus.follows[0].healthy = False
    bench.clock.time = 140.0
    await bench.feed.tick()
    assert bench.feed.direct
    await bench.feed.stop()


async def test_a_private_table_reads_one_namespace_directly() -> None:
    bench = Bench()
    asked: list[str] = []
    bench.api.objects["s"] = body("s", 5)
    list_all = bench.api.list

    async def recording(resource: object, namespace: str = "", **rest: Any) -> Page:
        asked.append(namespace)
        return await list_all(resource, namespace, **rest)

    bench.api.list = recording  # type: ignore[method-assign]
    table = bench.mirror.add(SECRET, Thing, namespace="ns")
    feed = bench.mirror._feeds[SECRET]
    await feed.start()
    for _ in range(10):
        await asyncio.sleep(0)
    await feed.tick()
    assert (feed.synced, feed.direct) == (True, True)
    assert table.get("ns", "s") is not None
    await bench.mirror.resync((SECRET,))
    assert set(asked) == {"ns"}
    await feed.stop()


def by_size(obj: Thing) -> list[int]:
    return [obj.size]


def by_name(obj: Thing) -> list[str]:
    return [obj.metadata.name]


async def test_all_who_ask_for_a_resource_share_one_table_with_the_indexes_of_all() -> None:
    bench = Bench()
    assert bench.mirror.add(POD, Thing, {"size": by_size}) is bench.table
    assert bench.mirror.add(POD, Thing, {"size": by_size, "name": by_name}) is bench.table
    assert list(bench.mirror.resources) == [POD]
    bench.mirror.written(POD, body("a", 1, size=7))
    assert list(bench.table.by_index("size", 7)) == list(bench.table.by_index("name", "a")) == list(bench.table)
    assert len(bench.table) == 1
    await bench.start()
    assert len(bench.bus.follows) == 1


class Other(Thing, frozen=True):
    """The same objects, looked at in another way."""


def test_what_does_not_fit_into_one_table_is_an_error() -> None:
    mirror = Bench().mirror
    mirror.add(SECRET, Thing, namespace="ns")
    assert mirror.add(SECRET, Thing, namespace="ns") is mirror.add(SECRET, Thing, namespace="ns")
    already = "mirrored already, as another type or from another namespace"
    with pytest.raises(RuntimeError, match=f"^pods are {already}$"):
        mirror.add(POD, Other)
    for namespace in ("", "elsewhere"):
        with pytest.raises(RuntimeError, match=f"^secrets are {already}$"):
            mirror.add(SECRET, Thing, namespace=namespace)
    with pytest.raises(RuntimeError, match=f"^pods are {already}$"):
        mirror.add(POD, Thing, namespace="ns")
    assert (mirror.namespace_of(SECRET), mirror.namespace_of(POD), mirror.namespace_of(NODE)) == ("ns", "", "")
    mirror.add(POD, Thing, {"size": by_size})
    with pytest.raises(RuntimeError, match=r"^index size exists already, or comes after the first object$"):
        mirror.add(POD, Thing, {"size": by_name})


def test_an_index_that_comes_after_objects_is_an_error() -> None:
    bench = Bench()
    bench.mirror.add(POD, Thing, {"size": by_size})
    bench.mirror.written(POD, body("a", 1))
    assert bench.mirror.add(POD, Thing, {"size": by_size}) is bench.table
    with pytest.raises(RuntimeError, match=r"^index name exists already, or comes after the first object$"):
        bench.mirror.add(POD, Thing, {"name": by_name})


async def test_a_message_that_hides_that_of_the_epoch_makes_nothing_absent(bench: Bench) -> None:
    """A late reader gets a message of another watcher in its old epoch, instead of that of the new one."""
    bench.api.objects = {"a": body("a", 5), "c": body("c", 3, uid="u-another")}
    for name, version in (("a", 5), ("b", 6), ("c", 2)):
        await bench.say("ADDED", body(name, version), "e1")
    await bench.publish("e2", 10)
    assert bench.held.keys() == {"a", "b", "c"}
    await until(lambda: bench.held == {"a": "5", "c": "3"})
    assert bench.table.was_deleted("u-b")
    assert bench.table.was_deleted("u-c")


async def test_what_was_presumed_absent_and_is_spoken_of_again_is_asked_for(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 5), body("b", 6), body("c", 7))
    await bench.publish("e2", 20)
    assert bench.held == {}
    bench.api.objects = {"a": body("a", 5)}
    await bench.say("ADDED", body("a", 5), "e1")
    await bench.say("ADDED", body("b", 6), "e1")
    await bench.say("MODIFIED", body("c", 21), "e2")
    assert bench.held == {"c": "21"}
    await until(lambda: bench.held == {"c": "21", "a": "5"} and bench.table.was_deleted("u-b"))


async def test_a_consistent_list_knows_better_than_an_inference(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 5))
    await bench.publish("e2", 20)
    assert bench.held == {}
    bench.api.objects, bench.api.version = {"a": body("a", 5)}, 20
    await bench.mirror.read_owned(POD, "ns")
    assert bench.held == {"a": "5"}


async def test_a_consistent_list_decodes_only_what_is_new(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.publish("e1", 10, body("a", 5), body("b", 6))
    bench.api.objects, bench.api.version = {"a": body("a", 5), "b": body("b", 11), "c": body("c", 12)}, 20
    decoded, decode = list[str](), ObjectDecoder[Thing].decode

    def noted(decoder: ObjectDecoder[Thing], raw: bytes | msgspec.Raw, source: str = "") -> Thing | None:
        decoded.append(decode_head(raw).metadata.name)
        return decode(decoder, raw, source)

    monkeypatch.setattr(ObjectDecoder, "decode", noted)
    await bench.mirror.read_owned(POD, "ns")
    assert decoded == ["b", "c"]
    assert bench.held == {"a": "5", "b": "11", "c": "12"}


async def test_an_answer_that_was_under_way_does_not_undo_a_later_inference(bench: Bench) -> None:
    await bench.publish("e1", 10, body("a", 5))
    asked, may_answer = asyncio.Event(), asyncio.Event()
    answer = bench.api.get

    async def slow(*where: Any) -> bytes:
        found = await answer(*where)
        asked.set()
        await may_answer.wait()
        return found

    bench.api.objects, bench.api.get = {"a": body("a", 5)}, slow
    reading = asyncio.create_task(bench.mirror.read(POD, "ns", "a"))
    await asked.wait()
    await bench.publish("e2", 20)
    may_answer.set()
    await reading
    assert bench.held == {}


async def test_two_lines_of_versions_end_the_mirror(bench: Bench) -> None:
    """etcd was restored: objects of the old line hide those of the new one."""
    await bench.publish("0.e1", 10, body("a", 5))
    await bench.feed.tick()
    await bench.mark("listing", epoch="1.e2")
    with pytest.raises(VersionsWentBack, match="line 1 of versions, this process began with line 0"):
        await bench.feed.tick()
    late = Bench()
    late.bus.streams = bench.bus.streams
    await late.feed.start()
    with pytest.raises(VersionsWentBack):
        await late.mirror.run()
    await bench.publish("1.e2", 4, body("a", 3))
    last = Bench()
    last.bus.streams = bench.bus.streams
    await last.feed.start()
    await last.feed.tick()
    assert last.held == {"a": "3"}


async def test_what_cannot_be_handled_is_set_aside_until_it_is_changed(bench: Bench) -> None:
    def breaks(old: Thing | None, new: Thing | None) -> None:
        if new is not None and new.size < 0:
            raise ValueError("negative")

    bench.table.listen(breaks)
    await bench.publish("e1", 10, body("a", 5, size=-1), body("b", 6))
    assert [(one.name, one.error) for one in bench.mirror.undecodable(POD)] == [("a", "ValueError: negative")]
    assert bench.held == {"a": "5", "b": "6"}
    await bench.say("MODIFIED", body("a", 4, size=1))
    assert bench.mirror.is_undecodable(POD, "u-a")
    await bench.say("MODIFIED", body("a", 12, size=1))
    assert not bench.mirror.is_undecodable(POD, "u-a")
