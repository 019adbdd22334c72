"""A table of some pods when the bus cannot feed it, and when single reads and writes return others."""

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import POD
from flotilla_common.mirror.scope import Needs
from tests.testkit.documents import Json
from tests.unit.mirror.scoped import SETS, Scoped, encode, pod, settle

OWNED = Needs(owners=(SETS,))
MINE, FREE = pod("a", 5, "web"), pod("a", 6)


async def fallen_back(*documents: Json, namespace: str = "") -> Scoped:
    """Return a mirror whose watcher is of an older release, so it watches the apiserver, which has these pods."""
    made = Scoped(OWNED)
    if namespace:
        made.need(namespace)
    for document in documents:
        made.api.store(POD, document)
    await made.start()
    await made.mark("synced", 10, layout=0)
    assert not made.feed.synced
    await made.tick(31)
    assert made.feed.fallen_back
    return made


async def event(made: Scoped, kind: str, document: Json) -> None:
    made.api.send(POD, kind, document)
    await settle()


async def test_subjects_of_an_older_release_are_not_used() -> None:
    made = Scoped(OWNED)
    await made.start()
    await made.publish("e1", 10, layout=0)
    await made.mark("synced", 10, layout=0)
    assert (made.feed.synced, made.sources.trusted) == (False, False)
    await made.tick(29)
    assert not made.feed.direct


async def test_the_return_of_an_older_release_ends_the_trust_in_the_bus() -> None:
    """Its messages match no filter, so the table would stay as it is, for as long as its markers come."""
    made = Scoped(OWNED)
    await made.start()
    await made.publish("e1", 10, pod("a", 1, "web"))
    made.api.store(POD, pod("b", 2, "web"))
    await made.beats(20)
    for time in (25, 40, 51):
        assert made.held == {"a": 1}
        made.clock.time = time
        await made.mark("synced", 20, "e2", layout=0)
        await made.tick(time)
    assert made.feed.fallen_back
    assert made.held == {"b": 2}


async def test_of_a_list_only_what_is_needed_is_kept() -> None:
    made = await fallen_back(
        pod("owned", 1, "web"), pod("other", 2), pod("near", 3, namespace="bank"), pod("odd", 4, broken=True),
        namespace="bank",
    )  # fmt: skip
    assert made.feed.synced
    assert made.held == {"owned": 1, "near": 3}
    assert not made.decoder.undecodable
    assert made.mirror.covers(POD, "bank")
    assert not made.mirror.covers(POD, "shop")


async def test_of_events_only_what_is_needed_is_kept() -> None:
    made = await fallen_back(MINE)
    await event(made, "ADDED", pod("other", 7))
    await event(made, "ADDED", pod("b", 8, "web"))
    assert made.held == {"a": 5, "b": 8}
    made.heard.clear()
    await event(made, "MODIFIED", pod("a", 9))
    assert (made.held, made.heard) == ({"b": 8}, [("a", False)])
    assert not made.table.was_deleted("u-a")
    await event(made, "MODIFIED", pod("a", 10, "api"))
    await event(made, "DELETED", pod("b", 11, "web"))
    assert made.held == {"a": 10}
    assert made.table.was_deleted("u-b")


async def test_a_list_that_shows_another_owner_drops_the_pod() -> None:
    made = Scoped(OWNED)
    await made.start()
    await made.publish("e1", 3, pod("a", 1, "web"), pod("gone", 2, "web"))
    made.api.store(POD, FREE)
    made.heard.clear()
    await made.tick(31)
    assert made.held == {}
    assert sorted(made.heard) == [("a", False), ("gone", False)]
    assert [made.table.was_deleted(uid) for uid in ("u-a", "u-gone")] == [False, True]


async def test_more_is_needed_while_the_apiserver_is_watched() -> None:
    made = await fallen_back(MINE, pod("b", 2, namespace="bank"))
    lists = made.api.lists.count("pods")
    await made.tick(32)
    assert made.api.lists.count("pods") == lists, "nothing has changed"
    made.need("bank")
    await settle()
    assert not made.mirror.covers(POD, "bank")
    assert made.held == {"a": 5}
    made.clock.time = 33
    await made.feed.tick()
    assert not made.mirror.covers(POD, "bank"), "the LIST has only begun"
    await settle()
    assert made.mirror.covers(POD, "bank")
    assert made.held == {"a": 5, "b": 2}
    lists = made.api.lists.count("pods")
    await made.tick(34)
    assert made.api.lists.count("pods") == lists
    await event(made, "MODIFIED", pod("b", 9, namespace="bank"))
    assert made.held == {"a": 5, "b": 9}


async def test_a_new_watcher_ends_the_direct_watch() -> None:
    made = await fallen_back(MINE)
    await made.publish("e2", 20, pod("a", 15, "web"), pod("other", 16))
    await made.tick(32)
    assert not made.feed.direct
    assert made.held == {"a": 15}
    await event(made, "MODIFIED", pod("a", 30, "web"))
    assert made.held == {"a": 15}, "the direct watch has ended"
    made.need("bank")
    await settle()
    await made.tick(33)
    assert (made.feed.direct, made.mirror.covers(POD, "bank")) == (False, True)


async def test_a_source_that_begins_on_the_bus_does_not_cause_a_fallback() -> None:
    made = Scoped(OWNED)
    await made.start()
    await made.publish("e1", 3)
    for time in (10, 20, 29):
        await made.beats(time)
    await made.mark("listing")
    made.need("bank")
    await settle()
    await made.tick(58)
    assert not made.feed.direct
    await made.tick(60)
    assert made.feed.direct, "the new source has nothing to trust for so long"


async def bus_only() -> Scoped:
    made = Scoped(OWNED)
    await made.start()
    await made.publish("e1", 3)
    return made


async def written(made: Scoped, document: Json) -> object:
    return made.mirror.written(POD, encode(document))


async def read(made: Scoped, document: Json) -> object:
    made.api.store(POD, document)
    return await made.mirror.read(POD, "shop", "a")


async def listed(made: Scoped, document: Json) -> object:
    made.api.replace_all(POD, document)
    return await made.mirror.read_owned(POD, "shop")


async def listed_by_name(made: Scoped, document: Json) -> object:
    made.api.replace_all(POD, document)
    return await made.mirror.read_owned(POD, name="a")


Way = Callable[[Scoped, Json], Awaitable[object]]
WAYS = pytest.mark.parametrize("way", [written, read, listed, listed_by_name])


@pytest.mark.parametrize("way", [written, read])
async def test_what_is_not_needed_is_returned_but_not_kept(way: Way) -> None:
    made = await bus_only()
    found = await way(made, FREE)
    assert cast("Pod", found).metadata.name == "a"
    assert (made.held, made.heard) == ({}, [])
    await way(made, pod("a", 7, "web"))
    assert made.held == {"a": 7}


@WAYS
async def test_what_shows_another_owner_is_dropped_and_may_come_back(way: Way) -> None:
    made = await bus_only()
    made.mirror.written(POD, encode(MINE))
    made.heard.clear()
    await way(made, FREE)
    assert (made.held, made.heard) == ({}, [("a", False)])
    assert not made.table.was_deleted("u-a")
    await made.say(pod("a", 7, "api"))
    assert made.held == {"a": 7}


@WAYS
async def test_what_is_older_than_what_is_held_drops_nothing(way: Way) -> None:
    made = await bus_only()
    made.mirror.written(POD, encode(pod("a", 9, "web")))
    await way(made, FREE)
    assert made.held == {"a": 9}


async def test_a_list_sets_nothing_aside_that_is_not_needed() -> None:
    made = await bus_only()
    made.mirror.written(POD, encode(pod("a", 5, "web", broken=True)))
    assert made.mirror.is_undecodable(POD, "u-a")
    await listed(made, pod("a", 6, broken=True))
    assert not made.mirror.is_undecodable(POD, "u-a")


@pytest.mark.parametrize(("version", "aside"), [(4, True), (5, False)])
async def test_an_older_move_leaves_what_is_set_aside(version: int, aside: bool) -> None:
    made = await bus_only()
    before = pod("a", 3, "web")
    made.mirror.written(POD, encode(pod("a", 5, "web", broken=True)))
    await made.move_away(before, pod("a", version))
    assert made.mirror.is_undecodable(POD, "u-a") is aside


async def test_the_resync_of_a_gained_shard_fills_the_table_before_the_bus_does() -> None:
    made = await bus_only()
    made.mirror.hold((), 2)
    for document in (pod("a", 5, "web"), pod("b", 6, "api"), pod("other", 7)):
        made.api.store(POD, document)
    made.mirror.hold((0, 1), 2)
    await made.mirror.resync([POD])
    assert made.held == {"a": 5, "b": 6}
