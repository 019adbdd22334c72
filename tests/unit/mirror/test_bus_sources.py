"""A table of some pods, read from the bus: its groups of interests, their changes, and pods that move."""

import asyncio
from typing import cast

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.bus.interface import Bus
from flotilla_common.mirror.bus_sources import SHRINK_SECONDS
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.mirror.scope import MOST_NAMESPACES, Needs
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.mirror.scoped import SETS, Scoped, encode, pod, settle, subject_of

OWNED = Needs(owners=(SETS,))
EXTRAS = Needs(owners=(SETS,), sidecars=True)


async def scoped(needs: Needs | None = None, *namespaces: str) -> Scoped:
    made = Scoped(needs)
    for namespace in namespaces:
        made.need(namespace)
    await made.start()
    return made


async def test_only_what_is_needed_reaches_the_table() -> None:
    made = await scoped(EXTRAS, "bank")
    await made.publish(
        "e1",
        10,
        pod("owned", 1, "web"),
        pod("extras", 2, sidecars=True),
        pod("near", 3, namespace="bank"),
        pod("both", 4, "web", namespace="bank", sidecars=True),
        pod("other", 5),
    )
    assert made.held == {"owned": 1, "extras": 2, "near": 3, "both": 4}
    assert made.feed.synced
    await made.mirror.synced(0.01)


async def test_a_table_of_everything_has_one_source_without_filters() -> None:
    made = Scoped()
    made.mirror.add(POD, made.decoder.kind)
    made.need("bank")
    await made.start()
    await made.publish("e1", 10, pod("a", 1), layout=0)
    assert made.held == {"a": 1}
    assert made.feed.synced
    assert [one.filters for one in made.follows] == [(">",)]
    assert made.mirror.covers(POD, "elsewhere")
    made.need("shop")
    await settle()
    assert len(made.bus.follows) == 1


async def test_a_new_namespace_gets_a_source_beside_the_old_one_until_it_is_synced() -> None:
    made = await scoped(None, "shop")
    await made.publish("e1", 10, pod("a", 1), pod("b", 2, namespace="bank"))
    assert made.mirror.covers(POD, "shop")
    await made.mark("listing")
    made.need("bank")
    assert not made.mirror.covers(POD, "bank")
    await settle()
    assert made.held == {"a": 1, "b": 2}, "the new source has begun"
    assert made.feed.synced
    assert made.mirror.covers(POD, "shop")
    assert not made.mirror.covers(POD, "bank"), "it has not said yet that this is all"
    assert not made.sources.trusted
    await made.say(pod("a", 11))
    await made.say(pod("b", 12, namespace="bank"))
    assert made.held == {"a": 11, "b": 12}
    old, new = made.follows
    await made.mark("synced", 13)
    assert made.mirror.covers(POD, "bank")
    assert made.sources.trusted
    await settle()
    assert (old.healthy, new.healthy) == (False, True)
    assert made.heard.count(("a", False)) == 0
    await made.say(pod("a", 14))
    assert made.held == {"a": 14, "b": 12}


async def test_a_new_source_tells_the_mirror_when_it_covers_more() -> None:
    made = await scoped(None, "shop")
    await made.publish("e1", 10)
    covered: list[bool] = []
    made.mirror.on_synced(lambda: covered.append(made.mirror.covers(POD, "bank")))
    made.need("bank")
    assert covered == []
    await settle()
    assert covered == [True]


async def test_what_is_needed_no_more_is_dropped_after_a_while_without_a_call() -> None:
    made = await scoped(None, "shop", "bank")
    await made.publish("e1", 10, pod("a", 1), pod("b", 2, namespace="bank"))
    made.heard.clear()
    made.release("bank")
    await made.beats(SHRINK_SECONDS - 1)
    await made.say(pod("b", 12, namespace="bank"))
    assert made.held == {"a": 1, "b": 12}, "it may be needed again soon"
    made.mirror.written(POD, encode(pod("b", 13, namespace="bank")))
    assert made.held == {"a": 1, "b": 13}, "what is followed is taken from everywhere"
    assert made.mirror.covers(POD, "bank")
    assert len(made.bus.follows) == 1
    made.heard.clear()
    await made.beats(SHRINK_SECONDS)
    assert made.held == {"a": 1}
    assert made.heard == []
    assert not made.mirror.covers(POD, "bank")
    assert len(made.follows) == 1
    made.need("bank")
    await settle()
    assert made.held == {"a": 1, "b": 12}, "it was not deleted"


async def test_the_last_change_begins_the_while() -> None:
    made = await scoped(None, "shop", "bank", "farm")
    await made.publish("e1", 10, pod("b", 2, namespace="bank"))
    made.release("bank")
    made.clock.time = SHRINK_SECONDS - 1
    made.release("farm")
    await made.beats(SHRINK_SECONDS)
    assert made.held == {"b": 2}
    await made.beats(2 * SHRINK_SECONDS - 1)
    assert made.held == {}


async def test_a_group_without_interests_ends() -> None:
    made = await scoped(OWNED, "bank")
    await made.publish("e1", 10, pod("a", 1, "web"), pod("b", 2, namespace="bank"))
    assert len(made.follows) == 2
    made.release("bank")
    await made.beats(SHRINK_SECONDS)
    assert made.held == {"a": 1}
    assert len(made.follows) == 1
    assert made.feed.synced


async def test_a_change_waits_for_the_source_of_the_change_before() -> None:
    made = await scoped(None, "shop")
    await made.publish("e1", 10, pod("a", 1), pod("b", 2, namespace="bank"), pod("c", 3, namespace="farm"))
    await made.mark("listing")
    made.need("bank")
    await settle()
    made.need("farm")
    await settle()
    serving, successor = made.follows
    assert not made.mirror._feeds[POD]._bus.trusted  # type: ignore[union-attr]
    assert made.held == {"a": 1, "b": 2}
    await made.mark("synced", 10)
    await settle()
    (newest,) = made.follows
    assert newest not in (serving, successor)
    assert made.held == {"a": 1, "b": 2, "c": 3}
    assert all(made.mirror.covers(POD, namespace) for namespace in ("shop", "bank", "farm"))


async def test_namespaces_that_come_at_once_leave_one_source() -> None:
    made = await scoped(None, "shop")
    await made.publish("e1", 10, pod("a", 1), pod("b", 2, namespace="bank"), pod("c", 3, namespace="farm"))
    for namespace in ("bank", "farm", "mill"):
        made.need(namespace)
    await settle()
    assert len(made.follows) == 1
    assert made.held == {"a": 1, "b": 2, "c": 3}


async def test_a_source_of_all_pods_covers_each_of_many_namespaces() -> None:
    made = await scoped(OWNED, *(f"n{number}" for number in range(MOST_NAMESPACES)))
    await made.publish("e1", 10, pod("a", 1))
    assert (made.held, made.mirror.covers(POD, "n0")) == ({}, True)
    made.need("one-more")
    await settle()
    assert (made.held, made.mirror.covers(POD, "n0")) == ({"a": 1}, True)


async def test_shards_decide_which_owners_are_followed() -> None:
    made = await scoped(OWNED)
    names = [f"set{number}" for number in range(20)]
    await made.publish("e1", 99, *(pod(name, number, name) for number, name in enumerate(names, 1)))
    everything = set(names)
    assert made.held.keys() == everything
    made.mirror.hold({0}, 2)
    await made.beats(SHRINK_SECONDS)
    first = set(made.held)
    made.mirror.hold({1}, 2)
    await settle()
    second = set(made.held)
    assert (first | second, first & second) == (everything, set())
    assert first
    assert second
    made.mirror.hold((), 2)
    await made.beats(2 * SHRINK_SECONDS)
    assert made.held == {}
    assert made.feed.synced
    made.mirror.hold((), 1)
    await settle()
    assert made.held.keys() == everything, "with one shard a standby follows all"


async def test_an_epoch_of_one_group_leaves_the_pods_of_others() -> None:
    """Let the consumers of two sources show the end of the epoch one after the other."""
    made = await scoped(OWNED, "bank")
    both = pod("both", 1, "web", namespace="bank")
    await made.publish("e1", 10, pod("owned", 2, "web"), pod("near", 3, namespace="bank"), both)
    late = made.behind("namespaces")
    await made.publish("e2", 20, both)
    assert made.held == {"near": 3, "both": 1}, "the source of the owners has completed the epoch"
    made.catch_up(late)
    assert made.held == {"both": 1}


async def test_what_cannot_be_decoded_in_one_group_survives_the_epoch_of_another() -> None:
    made = await scoped(OWNED, "bank")
    await made.publish("e1", 10, pod("owned", 1, "web", broken=True), pod("near", 2, namespace="bank", broken=True))
    assert made.decoder.undecodable.keys() == {"u-owned", "u-near"}
    late = made.behind("namespaces")
    await made.publish("e2", 20)
    assert made.decoder.undecodable.keys() == {"u-near"}
    made.catch_up(late)
    assert made.decoder.undecodable.keys() == set()


@pytest.mark.parametrize("version", [5, 6], ids=["in the same version", "in a newer one"])
async def test_a_pod_that_moves_away_is_dropped_and_may_come_back(version: int) -> None:
    made = await scoped(OWNED)
    mine, free = pod("a", 1, "web"), pod("a", 5)
    await made.publish("e1", 3, mine)
    made.heard.clear()
    await made.move(mine, free)
    assert (made.held, made.heard) == ({}, [("a", False)])
    assert not made.table.was_deleted("u-a")
    back = pod("a", version, "web")
    await made.say(back)
    assert (made.held, made.heard) == ({"a": version}, [("a", False), ("a", True)])


MOVES = [
    pytest.param(pod("a", 5, "api"), id="to another owner that is followed"),
    pytest.param(pod("a", 5, "web", sidecars=True), id="to another trait"),
    pytest.param(pod("a", 5, sidecars=True), id="to another group"),
]


@pytest.mark.parametrize("after", MOVES)
@pytest.mark.parametrize("first", ["pod", "move"])
async def test_a_pod_that_moves_within_what_is_needed_stays(after: Json, first: str) -> None:
    """Let either consumer be first: the old version stays until the new one comes."""
    made = await scoped(EXTRAS)
    before = pod("a", 1, "web")
    await made.publish("e1", 3, before)
    made.heard.clear()
    if first == "move":
        await made.move_away(before, after)
        assert (made.held, made.heard) == ({"a": 1}, [])
        await made.say(after)
    else:
        await made.move(before, after)
    assert made.held == {"a": 5}
    assert ("a", False) not in made.heard


async def test_a_move_that_is_older_than_what_is_held_is_ignored() -> None:
    made = await scoped(OWNED)
    mine, free = pod("a", 1, "web"), pod("a", 5)
    await made.publish("e1", 3, mine)
    made.mirror.written(POD, encode(pod("a", 9, "web")))
    await made.move(mine, free)
    assert made.held == {"a": 9}


async def test_a_pod_that_moved_between_two_epochs_is_not_absent_meanwhile() -> None:
    """Its former source completes the epoch before its new source has received anything."""
    made = await scoped(EXTRAS)
    before, after = pod("a", 1, "web"), pod("a", 5, sidecars=True)
    await made.publish("e1", 3, before)
    late = made.behind("sidecars")
    made.heard.clear()
    await made.mark("listing", epoch="e2")
    await made.move(before, after, "e2")
    await made.mark("synced", 8, "e2")
    assert (made.held, made.heard) == ({"a": 1}, [])
    made.catch_up(late)
    assert made.held == {"a": 5}


async def test_a_move_takes_what_cannot_be_decoded_with_it() -> None:
    made = await scoped(OWNED)
    mine = pod("a", 1, "web", broken=True)
    await made.publish("e1", 3, mine)
    assert made.mirror.is_undecodable(POD, "u-a")
    await made.move(mine, pod("a", 5, broken=True))
    assert not made.mirror.is_undecodable(POD, "u-a")


async def test_a_pod_that_is_released_in_a_followed_namespace_stays() -> None:
    made = await scoped(OWNED, "shop")
    mine, free = pod("a", 1, "web"), pod("a", 5)
    await made.publish("e1", 3, mine)
    await made.move(mine, free)
    assert made.held == {"a": 5}


async def test_a_scope_without_interests_is_synced_at_once_and_never_falls_back() -> None:
    made = Scoped()
    assert not made.feed.synced
    await made.feed.start()
    assert (made.feed.synced, made.bus.follows) == (True, [])
    assert not made.mirror.covers(POD, "shop")
    for time in (31, 1000):
        await made.tick(time)
        assert (made.feed.direct, made.feed.lag, made.api.asked) == (False, 0, [])


async def test_of_two_sources_the_older_proof_counts() -> None:
    made = await scoped(OWNED, "bank")
    await made.publish("e1", 3)
    made.clock.time = 7
    made.source("owners").last_update = 7
    assert made.feed.lag == 7


async def test_sources_leave_nothing_behind() -> None:
    before = asyncio.all_tasks()
    made = await scoped(EXTRAS, "shop")
    await made.publish("e1", 10, pod("a", 1))
    await made.mark("listing")
    made.need("bank")
    await settle()
    ending = made.bus.follows[-1]

    async def slow() -> None:
        await settle()
        ending.healthy = False

    ending.stop = slow
    made.need("farm")  # neither is its source begun, nor the one before it ended
    await made.feed.stop()
    assert asyncio.all_tasks() == before
    assert made.follows == []


async def test_a_mirror_that_ends_stops_its_sources() -> None:
    bus = FakeBus()
    mirror = Mirror(api=FakeApi().api, bus=cast("Bus", bus), clock=FakeClock())
    mirror.add(POD, Scoped().decoder.kind, needs=EXTRAS)
    running = asyncio.create_task(mirror.run())
    await settle()
    assert len(bus.follows) == 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [one for one in bus.follows if one.healthy] == []


@pytest.mark.parametrize("to", ["", "kube.v1.core.pods.shop.a", "nonsense"])
async def test_a_move_to_no_subject_of_a_pod_ends_the_pod_only(to: str) -> None:
    made = await scoped(OWNED)
    gone = pod("a", 1, "web")
    await made.publish("e1", 3, gone, pod("b", 2, "web"))
    identity = {"metadata": {key: gone["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}}
    await made.say(identity, "MOVED", "e1", subject_of(gone), to=to)
    assert made.held == {"b": 2}
