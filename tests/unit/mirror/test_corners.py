"""Corner cases after other failures: empty epochs, undecodable objects, switches between bus and apiserver."""

import asyncio
from typing import Any

import pytest
from prometheus_client import REGISTRY

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.bus import subjects
from flotilla_common.mirror import table as table_module
from flotilla_common.mirror.feed import LISTING_SHARE
from flotilla_common.mirror.mirror import TEND_SECONDS
from flotilla_common.mirror.table import Table
from tests.unit.mirror.test_direct_reading import Sourced, head, raw
from tests.unit.mirror.test_mirror import Bench, Thing, body


async def started() -> Bench:
    bench = Bench()
    await bench.start()
    return bench


def shown(name: str) -> float | None:
    return REGISTRY.get_sample_value(f"flotilla_mirror_{name}", {"resource": POD.id})


async def test_a_mirror_shows_what_it_holds_and_how_fresh_that_is() -> None:
    bench = await started()
    await bench.publish("e1", 10, body("a", 1), body("b", 2), body("odd", 3, size="wrong"))
    bench.clock.time += 5.0
    names = ("objects", "undecodable_objects", "lag_seconds", "direct")
    assert [shown(name) for name in names] == [2.0, 1.0, 5.0, 0.0]
    bench.clock.time += 25.0
    await bench.feed.tick()
    assert shown("direct") == 1.0
    await bench.feed.stop()


async def test_the_whole_stream_of_a_resource_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, followed = Bench(), list[tuple[str, list[str]]]()
    follow = bench.bus.follow

    async def noted(stream: str, filters: list[str], *listeners: Any) -> Any:
        followed.append((stream, filters))
        return await follow(stream, filters, *listeners)

    monkeypatch.setattr(bench.bus, "follow", noted)
    await bench.start()
    assert followed == [(subjects.kube_stream(POD).name, [">"])]


async def test_an_epoch_without_objects_empties_the_table() -> None:
    bench = await started()
    await bench.publish("e1", 10, body("a", 1))
    await bench.publish("e2", 20)
    assert bench.held == {}


async def test_what_is_as_old_as_its_epoch_and_was_not_in_it_is_gone() -> None:
    bench = await started()
    await bench.publish("e1", 10, body("a", 1), body("b", 2))
    bench.mirror.written(POD, body("b", 20))
    await bench.publish("e2", 20, body("a", 1))
    assert bench.held == {"a": "1"}


async def test_what_is_known_already_is_not_even_decoded() -> None:
    """Our own writes come back by the thousand; a body that cannot be decoded shows whether it was tried."""
    bench = await started()
    bench.mirror.written(POD, body("a", 1))
    await bench.say("MODIFIED", body("a", 1, size="wrong"))
    assert not bench.mirror.is_undecodable(POD, "u-a")
    await bench.say("MODIFIED", body("a", 2, size="wrong"))
    assert bench.mirror.is_undecodable(POD, "u-a")


async def test_a_member_that_is_null_is_absent() -> None:
    bench = await started()
    bench.mirror.written(POD, body("a", 1)[:-1] + b',"spec":{"nodeSelector":null,"containers":[{"env":null}]}}')
    assert bench.held == {"a": "1"}


async def test_what_is_nested_too_deeply_is_set_aside() -> None:
    bench = await started()
    deep = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    bench.mirror.written(POD, body("a", 1)[:-1] + b',"x":' + deep + b"}")
    await bench.say("MODIFIED", body("b", 2))
    assert bench.held == {"b": "2"}


async def test_a_message_that_does_not_say_its_version_is_decoded() -> None:
    bench = await started()
    bench.mirror.written(POD, body("a", 1))
    await bench.bus.publish(
        subjects.kube(POD, "ns", "a"), body("a", 2), {"op": "MODIFIED", "uid": "u-a", "epoch": "e1"}
    )
    assert bench.held == {"a": "2"}


async def test_what_cannot_be_decoded_and_is_not_in_the_next_epoch_is_gone_but_not_what_is_newer() -> None:
    bench = await started()
    await bench.publish("e1", 10, body("old", 1, size="wrong"), body("kept", 2, size="wrong"))
    bench.mirror.written(POD, body("newer", 25, size="wrong"))
    assert bench.mirror.is_undecodable(POD, "u-old")
    await bench.publish("e2", 20, body("kept", 2, size="wrong"))
    assert [bench.mirror.is_undecodable(POD, f"u-{name}") for name in ("old", "kept", "newer")] == [False, True, True]


async def test_the_fallback_begins_with_the_second_that_was_agreed_and_ends_with_the_bus() -> None:
    bench = await started()
    await bench.publish("e1", 10, body("a", 1))
    bench.clock.time += 29.0
    await bench.feed.tick()
    assert not bench.feed.direct
    bench.clock.time += 1.0
    await bench.feed.tick()
    assert bench.feed.direct
    assert not bench.feed.synced, "the direct source has not listed yet"
    await bench.mark("synced", 11)
    await bench.feed.tick()
    assert not bench.feed.direct
    assert bench.feed.synced


async def test_a_bus_that_is_whole_but_was_never_synced_is_not_trusted() -> None:
    bench = await started()
    bench.clock.time += 20.0
    await bench.mark("listing")
    bench.clock.time += 10.0
    await bench.feed.tick()
    assert bench.feed.direct
    await bench.feed.stop()


async def test_a_list_that_makes_progress_is_waited_for_but_not_without_end() -> None:
    bench = await started()
    steps = range(10, 30 * LISTING_SHARE + 1, 10)
    waited: list[int] = []
    for seconds in steps:
        bench.clock.time += 10.0
        await bench.mark("listing", count=seconds)
        await bench.feed.tick()
        if not bench.feed.direct:
            waited.append(seconds)
    assert waited == list(steps[:-1])
    await bench.feed.stop()


async def test_a_list_that_makes_no_progress_any_more_is_not_waited_for() -> None:
    bench = await started()
    bench.clock.time += 25.0
    await bench.mark("listing", count=100)
    bench.clock.time += 29.0
    await bench.feed.tick()
    assert not bench.feed.direct
    bench.clock.time += 1.0
    await bench.feed.tick()
    assert bench.feed.direct
    await bench.feed.stop()


async def test_a_list_is_no_proof_that_the_table_is_up_to_date() -> None:
    bench = await started()
    bench.clock.time += 5.0
    await bench.mark("listing", count=100)
    assert shown("lag_seconds") == 5.0


async def test_a_source_that_falls_back_says_when_it_is_synced() -> None:
    bench = await started()
    bench.api.objects["a"] = body("a", 1)
    bench.clock.time += 30.0
    await bench.feed.tick()
    await bench.mirror.synced(1.0)
    assert bench.held == {"a": "1"}
    await bench.feed.stop()


async def test_a_running_mirror_looks_after_its_feeds_every_second() -> None:
    bench = Bench()
    running = asyncio.create_task(bench.mirror.run())
    for _ in range(200):
        await asyncio.sleep(0)
        if bench.mirror._feeds[POD].direct:
            break
    assert bench.mirror._feeds[POD].direct, "the bus never spoke"
    assert set(bench.clock.sleeps) >= {TEND_SECONDS}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_private_table_is_indexed_and_says_when_it_is_synced() -> None:
    bench = Bench()
    bench.mirror._feeds.clear()
    table = bench.mirror.add(CLAIM, Thing, {"size": lambda obj: [obj.size]}, "ns")
    bench.api.objects["a"] = body("a", 1, size=7)
    feed = bench.mirror._feeds[CLAIM]
    await feed.start()
    await bench.mirror.synced(1.0)
    assert [obj.metadata.name for obj in table.by_index("size", 7)] == ["a"]
    bench.clock.time += 5.0
    assert (feed.lag, feed.direct, feed.synced) == (5.0, True, True)
    await feed.stop()


async def test_a_watch_moves_objects_until_it_says_that_they_are_gone() -> None:
    made = Sourced()
    await made.list(10, ("a", 1), ("b", 2))
    await made.source.event("MODIFIED", head("a", 11), raw("a", 11))
    assert made.held == {"a": "11", "b": "2"}
    await made.source.event("DELETED", head("b", 12), raw("b", 12))
    assert made.held == {"a": "11"}


async def test_a_reading_that_finds_nothing_takes_the_object_that_was_held_and_no_namesake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = await started()
    bench.mirror.written(POD, body("a", 5, uid="first"))

    async def gone(*_: object) -> bytes:
        bench.mirror.written(POD, body("a", 7, uid="second"))
        return await type(bench.api).get(bench.api, POD, "ns", "a")

    monkeypatch.setattr(bench.api, "get", gone)
    assert await bench.mirror.read(POD, "ns", "a") is None
    assert bench.held == {"a": "7"}


def test_the_memory_of_what_is_gone_is_bounded_and_loses_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "ABSENT_MEMORY", 2)
    table = Table[Thing]()
    for name in ("a", "b", "c"):
        table.remove("ns", name, f"u-{name}")
    assert [table.apply(thing(name, 1)) for name in ("a", "b", "c")] == [True, False, False]


def test_a_removal_without_a_uid_is_remembered_with_the_uid_of_what_was_there() -> None:
    table = Table[Thing]()
    table.apply(thing("a", 1))
    assert table.remove("ns", "a")
    assert not table.apply(thing("a", 2)), "a late message does not revive it"


def test_an_object_leaves_each_index_that_it_does_not_belong_to_any_more() -> None:
    table = Table[Thing]({"tag": lambda obj: sorted(obj.metadata.labels)})
    table.apply(thing("a", 1, "kept", "left", "new"))
    table.apply(thing("a", 2, "kept", "new"))
    assert [len(table.by_index("tag", tag)) for tag in ("kept", "left", "new")] == [1, 0, 1]


def thing(name: str, version: int, *labels: str) -> Thing:
    meta = ObjectMeta(
        name=name, namespace="ns", uid=f"u-{name}", resource_version=str(version), labels=dict.fromkeys(labels, "")
    )
    return Thing(metadata=meta)
