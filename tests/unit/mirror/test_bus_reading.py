"""Corners of reading from the bus: large objects, repeated resets, ends."""

import asyncio

import msgspec

from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.mirror.bus_source import FETCH_SECONDS
from flotilla_common.mirror.decoder import ObjectDecoder
from flotilla_common.mirror.table import Table
from tests.unit.mirror.test_mirror import SPEC, Bench, Thing, body


class Failing:
    """An apiserver that fails so often before it answers."""

    def __init__(self, *errors: Exception, answer: bytes = b"") -> None:
        self.errors = list(errors)
        self.answer = answer
        self.asked: list[tuple[object, str, str]] = []

    async def __call__(self, resource: object, namespace: str, name: str) -> bytes:
        self.asked.append((resource, namespace, name))
        if self.errors:
            raise self.errors.pop(0)
        return self.answer


async def oversized(bench: Bench, fetch: Failing) -> None:
    await bench.start()
    bench.api.get = fetch  # type: ignore[method-assign]
    await bench.say("ADDED", body("big", 7), oversize="true")
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_large_object_is_asked_for_until_it_is_known() -> None:
    bench = Bench()
    fetch = Failing(Unreachable("reset"), ApiError(503, "", "busy"), answer=body("big", 8))
    await oversized(bench, fetch)
    assert bench.held == {"big": "8"}
    assert fetch.asked == [(POD, "ns", "big")] * 3
    assert bench.clock.sleeps == [FETCH_SECONDS] * 2


async def test_a_large_object_that_is_gone_is_not_asked_for_again() -> None:
    bench = Bench()
    fetch = Failing(ApiError(404, "NotFound", ""))
    await oversized(bench, fetch)
    assert len(fetch.asked) == 1
    assert bench.held == {}


async def test_an_object_that_the_bus_must_not_have_is_asked_for() -> None:
    bench = Bench()
    await bench.start()
    bench.api.get = fetch = Failing(answer=body("hidden", 8))  # type: ignore[method-assign]
    await bench.say("ADDED", body("hidden", 7), withheld="true")
    await asyncio.sleep(0)
    assert bench.held == {"hidden": "8"}
    await bench.say("MODIFIED", body("hidden", 8), withheld="true")
    await asyncio.sleep(0)
    assert len(fetch.asked) == 1


async def test_a_source_that_stops_asks_no_more() -> None:
    bench = Bench()
    await bench.start()
    waiting = asyncio.Event()

    async def never(*_: object) -> bytes:
        waiting.set()
        await asyncio.Event().wait()
        return b""

    bench.api.get = never  # type: ignore[method-assign]
    await bench.say("ADDED", body("big", 7), oversize="true")
    await waiting.wait()
    ((source,),) = (one.shards for one in bench.feed._bus._sources())  # type: ignore[union-attr]
    (task,) = source._fetches
    await source.stop()
    assert task.cancelled()
    assert not source.healthy
    assert not bench.bus.follows[0].healthy


async def test_after_a_reset_nothing_is_synced_until_the_marker_comes_again() -> None:
    bench = Bench()
    await bench.start()
    await bench.publish("e1", 10, body("a", 1))
    assert bench.feed.synced
    await bench.say("ADDED", body("half", 2), "e2")  # the next epoch had begun
    bench.bus.follows[0].on_reset()
    assert not bench.feed.synced
    bench.bus.wipe()
    await bench.bus.ensure_stream(SPEC)
    await bench.publish("e2", 20, body("b", 3))
    assert bench.held == {"b": "3"}
    assert bench.feed.synced


async def test_after_a_reset_the_same_epoch_is_taken_as_a_whole_again() -> None:
    bench = Bench()
    await bench.start()
    await bench.publish("e1", 10, body("a", 1), body("b", 2))
    bench.bus.follows[0].on_reset()
    await bench.say("ADDED", body("a", 1), "e1")
    await bench.mark("synced", 10, "e1")
    assert bench.held == {"a": "1"}


def decoder() -> ObjectDecoder[Thing]:
    return ObjectDecoder(POD, Thing, Table[Thing]())


def test_a_deletion_takes_its_own_object_only() -> None:
    made = decoder()
    made.take(body("a", 5, uid="second"))
    made.drop(HeadMeta(name="a", namespace="ns", uid="first", resource_version="9"))
    assert len(made.table) == 1
    made.drop(HeadMeta(name="a", namespace="elsewhere", uid="other", resource_version="9"))
    assert len(made.table) == 1
    made.drop(HeadMeta(name="a", namespace="ns", uid="", resource_version="4"))
    assert len(made.table) == 1
    made.drop(HeadMeta(name="a", namespace="ns", uid="", resource_version="6"))
    assert len(made.table) == 0


def test_what_cannot_be_decoded_is_forgotten_with_its_object() -> None:
    made = decoder()
    made.take(body("a", 5, size="wrong"))
    assert made.undecodable.keys() == {"u-a"}
    made.drop(HeadMeta(name="a", namespace="ns", uid="u-other"))
    assert made.undecodable.keys() == {"u-a"}
    made.drop(HeadMeta(name="a", namespace="ns", uid="u-a"))
    assert not made.undecodable


def test_what_cannot_be_decoded_says_what_it_is() -> None:
    made = decoder()
    heard: list[tuple[object, ...]] = []
    made.listen(lambda one: heard.append((one.resource, one.namespace, one.name, one.uid, one.version)))
    made.take(body("a", 5, size="wrong"))
    made.take(body("a", 6, size="wrong"))
    made.take(b"[]")
    assert heard == [(POD, "ns", "a", "u-a", "5"), (POD, "ns", "a", "u-a", "6"), (POD, "", "", "", "")]


def test_a_complete_list_forgets_what_it_lacks_up_to_its_version() -> None:
    made = decoder()
    for name, version in (("a", 5), ("b", 6), ("c", 7)):
        made.take(body(name, version, size="wrong"))
    made.forget_unlisted({"u-a"}, 6)
    assert made.undecodable.keys() == {"u-a", "u-c"}


def test_a_replaced_table_keeps_what_is_newer_listed_or_out_of_scope() -> None:
    table = Table[Thing]()
    for name, version in (("gone", 10), ("at", 20), ("new", 21), ("listed", 5), ("else", 5)):
        table.apply(msgspec.json.decode(body(name, version), type=Thing))
    listed = msgspec.json.decode(body("listed", 5), type=Thing)
    table.replace([listed], 20, lambda obj: obj.metadata.name != "else")
    assert {obj.metadata.name for obj in table} == {"new", "listed", "else"}
    table.apply(msgspec.json.decode(body("gone", 30), type=Thing))
    assert table.get("ns", "gone") is None  # a uid that was gone stays gone
