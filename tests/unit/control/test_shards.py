"""Leases and shards: one holder at a time, a fence that no pause and no skewed clock can open, fair shares."""

import asyncio
import copy

import pytest
from structlog.testing import capture_logs

from flotilla_common.api.resources import Resource
from flotilla_common.control import leases as leases_module
from flotilla_common.control import shards as shards_module
from flotilla_common.control.leases import LeaseTerms
from flotilla_common.control.shards import Shards, shard_of
from flotilla_common.kube.interface import ApiError, Page, Unreachable
from flotilla_common.mirror.table import VersionsWentBack
from tests.unit.control.fakes import ManualClock, ScriptedApi

TERMS = LeaseTerms(duration=15, retry=2)


class Replica:
    """One replica of a service, sharing an apiserver with others, with a clock of its own."""

    def __init__(
        self,
        api: ScriptedApi,
        name: str,
        count: int = 1,
        apart: tuple[int, ...] = (),
        names: tuple[str, ...] = (),
    ) -> None:
        self.clock = ManualClock()
        self.gained: list[frozenset[int]] = []
        self.shards = Shards(
            api=api,
            clock=self.clock,
            service="cloneset",
            namespace="kruise-system",
            identity=name,
            count=count,
            names=names,
            terms=TERMS,
            apart=apart,
        )
        self.calls: list[tuple[str, frozenset[int]]] = []
        self.shards.on_change(self._gain, lambda _: None, lambda held: self.calls.append(("held", held)))

    async def _gain(self, gained: frozenset[int]) -> None:
        self.gained.append(gained)
        self.calls.append(("gain", gained))

    async def tick(self, seconds: float = 0.0) -> frozenset[int]:
        self.clock.advance(seconds)
        await self.shards.tick()
        taking = self.shards._taking
        if taking is not None:
            await taking
        return self.shards.serving


async def test_the_first_replica_leads_and_the_second_stands_by() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    assert await a.tick() == {0}
    assert await b.tick() == frozenset()
    assert a.shards.owns("ns", "x")
    assert not b.shards.owns("ns", "x")


async def test_replicas_that_start_together_share_at_once() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=4), Replica(api, "b", count=4)
    a.shards.join()
    b.shards.join()
    assert await a.tick() == frozenset()
    assert await b.tick() == {0, 1}
    assert await a.tick(2) == {2, 3}
    assert (a.gained, b.gained) == ([{2, 3}], [{0, 1}])


async def test_a_replica_alone_takes_all_shards_after_a_while() -> None:
    api = ScriptedApi()
    a = Replica(api, "a", count=4)
    a.shards.join()
    assert await a.tick() == frozenset()
    assert await a.tick(shards_module.JOIN_SECONDS) == {0, 1, 2, 3}


async def test_a_replica_continues_with_its_shards_at_once_after_a_restart() -> None:
    api = ScriptedApi()
    assert await Replica(api, "a", count=4).tick() == {0, 1, 2, 3}
    again = Replica(api, "a", count=4)
    again.shards.join()
    assert await again.tick() == {0, 1, 2, 3}


async def test_the_only_shard_is_taken_at_once() -> None:
    api = ScriptedApi()
    a = Replica(api, "a")
    a.shards.join()
    assert await a.tick() == {0}


async def test_a_silent_leader_is_replaced_after_the_lease_duration_on_the_challengers_clock() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    await a.tick()
    await b.tick()
    assert await b.tick(14) == frozenset()
    assert await b.tick(2) == {0}
    assert b.gained == [{0}]


async def test_a_paused_leader_writes_nothing_when_it_wakes_up() -> None:
    api = ScriptedApi()
    a = Replica(api, "a")
    await a.tick()
    a.clock.advance(10.1)  # two thirds of 15 s: the fence falls before anybody may take over
    assert not a.shards.owns("ns", "x")


async def test_a_leader_that_lost_its_lease_notices_and_does_not_take_it_back() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    await a.tick()
    await b.tick()
    await b.tick(16)
    assert await a.tick(16) == frozenset()
    assert b.shards.owns("ns", "x")


async def test_renewal_keeps_the_lease() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    for _ in range(20):
        assert await a.tick(2) == {0}
        assert await b.tick(2) == frozenset()


async def test_a_renewal_without_an_answer_does_not_extend_the_fence() -> None:
    api = ScriptedApi()
    a = Replica(api, "a")
    await a.tick()
    for _ in range(5):
        api.answers = [Unreachable("timed out")]
        await a.tick(2)
    assert not a.shards.owns("ns", "x") or a.clock.elapsed - 1000 <= 10
    a.clock.advance(0.2)
    assert not a.shards.owns("ns", "x")


class Swallowing(ScriptedApi):
    """An apiserver whose network loses the next requests of these verbs: they are never answered."""

    def __init__(self) -> None:
        super().__init__()
        self.loses: list[str] = []

    async def list(self, resource: Resource, namespace: str = "", **options: object) -> Page:
        await self._perhaps("list")
        return await super().list(resource, namespace, **options)

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        await self._perhaps("replace")
        return await super().replace(resource, namespace, name, body, subresource)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str = "", resource_version: str = ""
    ) -> bytes:
        await self._perhaps("delete")
        return await super().delete(resource, namespace, name, uid=uid, resource_version=resource_version)

    async def _perhaps(self, verb: str) -> None:
        if verb in self.loses:
            self.loses.remove(verb)
            await asyncio.Event().wait()


@pytest.mark.parametrize("verb", ["list", "replace"])
async def test_a_renewal_that_vanishes_leaves_time_for_another(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """One second of the lease is a millisecond here, for requests only."""
    assert LeaseTerms().request == pytest.approx(3.75)
    monkeypatch.setattr(leases_module, "REQUEST_SHARE", leases_module.REQUEST_SHARE / 1000)
    api = Swallowing()
    a = Replica(api, "a")
    await a.tick()
    api.loses = [verb]
    a.clock.advance(4.5)  # renewed at 0.3 of the duration
    assert not await a.shards.tick()
    assert api.loses == []
    a.clock.advance(3.75)  # what the request took; no pause follows
    assert await a.shards.tick(), "the next round may wait again"
    a.clock.advance(9.9)
    assert a.shards.owns("ns", "x")
    assert a.gained == [{0}], "it was never lost"


class Slow(ScriptedApi):
    """An apiserver that takes a while for each renewal."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once = self.most = self.renewals = 0

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        self.renewals += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        for _ in range(10):  # turns of the loop: any concurrent task runs
            await asyncio.sleep(0)
        self.at_once -= 1
        return await super().replace(resource, namespace, name, body, subresource)


@pytest.mark.parametrize(("count", "most"), [(1, 1), (4, 5), (30, 8)], ids=["one", "some and a member", "many"])
async def test_leases_are_renewed_side_by_side(count: int, most: int) -> None:
    api = Slow()
    a = Replica(api, "a", count)
    assert await a.tick() == set(range(count))
    assert api.renewals == 0, "they were made"
    assert await a.tick(5) == set(range(count))
    assert api.renewals == (count if count == 1 else count + 1)
    assert api.most == most
    assert a.gained == [set(range(count))], "none was lost"


async def test_replicas_share_the_shards_fairly() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=4), Replica(api, "b", count=4)
    assert await a.tick() == {0, 1, 2, 3}
    await b.tick()
    for _ in range(3):
        await a.tick(2)
        await b.tick(2)
    assert len(a.shards.serving) == 2
    assert len(b.shards.serving) == 2
    assert a.shards.serving | b.shards.serving == {0, 1, 2, 3}


async def test_the_shards_of_a_dead_replica_move_to_the_living() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=4), Replica(api, "b", count=4)
    for _ in range(4):
        await a.tick(2)
        await b.tick(2)
    for _ in range(12):
        await a.tick(2)
    assert a.shards.serving == {0, 1, 2, 3}


async def test_a_released_lease_is_free_at_once() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    await a.tick()
    await b.tick()
    for lease in a.shards._leases:
        await lease.release()
    assert await b.tick(2) == {0}


def test_shard_of_is_stable_across_releases_and_spread() -> None:
    """Replicas of two releases with one number of shards hold leases side by side in an upgrade."""
    assert [shard_of("default", name, 8) for name in ("sample", "web", "db")] == [3, 0, 5]
    counts = [0] * 4
    for index in range(1000):
        counts[shard_of("default", f"web-{index}", 4)] += 1
    assert min(counts) > 180


async def test_a_retired_replica_keeps_its_lease_but_serves_nothing_until_it_lets_go() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    await a.tick()
    a.shards.retire()
    assert await a.tick(5) == frozenset()
    assert not a.shards.owns("ns", "x")
    assert await b.tick(5) == frozenset()  # a's last writes may still be in flight
    for lease in a.shards._leases:
        await lease.release()
    assert await b.tick(2) == {0}  # one retry period, not the lease's whole duration


async def test_an_apiserver_that_hangs_does_not_keep_a_replica_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards_module, "RELEASE_SECONDS", 0.01)
    api = ScriptedApi()
    replica = Replica(api, "a")
    await replica.tick()

    async def never(*_: object) -> bytes:
        return await asyncio.get_running_loop().create_future()

    api.replace = never  # type: ignore[assignment, method-assign]
    async with asyncio.timeout(5):
        await ended(asyncio.create_task(replica.shards.run()))
    assert replica.shards.serving == frozenset()


async def ended(running: asyncio.Task[None]) -> None:
    """Let it begin, and stop it as a service that ends does."""
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])


def holders(api: ScriptedApi) -> set[str]:
    return {lease["spec"]["holderIdentity"] for lease in api.objects.values()}  # type: ignore[index]


class Late(ScriptedApi):
    """An apiserver that acts on a write at once or late, and answers it later still."""

    def __init__(self, *, acts_late: bool) -> None:
        super().__init__()
        self.acts_late = acts_late
        self.entered, self.answers_now = asyncio.Event(), asyncio.Event()
        self.answers_now.set()

    async def replace(self, resource: Resource, namespace: str, name: str, body: bytes, subresource: str = "") -> bytes:
        if self.acts_late:
            await self._wait()
            return await super().replace(resource, namespace, name, body, subresource)
        reply = await super().replace(resource, namespace, name, body, subresource)
        await self._wait()
        return reply

    async def _wait(self) -> None:
        self.entered.set()
        await self.answers_now.wait()


@pytest.mark.parametrize("acts_late", [False, True])
async def test_a_replica_that_ends_in_the_middle_of_a_renewal_releases_its_lease(acts_late: bool) -> None:
    """The renewal has a new version already, or is yet to come."""
    api = Late(acts_late=acts_late)
    a = Replica(api, "a")
    await a.tick()
    a.clock.advance(4.5)
    api.entered.clear()
    api.answers_now.clear()
    running = asyncio.create_task(a.shards.run())
    await api.entered.wait()
    running.cancel()
    await asyncio.sleep(0)
    api.answers_now.set()
    await asyncio.wait([running])
    assert holders(api) == {""}


async def test_a_replica_whose_last_renewal_got_no_answer_releases_its_lease() -> None:
    api = ScriptedApi()
    a = Replica(api, "a")
    await a.tick()
    a.clock.advance(4.5)
    store = api.replace

    async def answer_lost(*arguments: object) -> bytes:
        api.replace = store  # type: ignore[method-assign]
        await store(*arguments)  # type: ignore[arg-type]
        raise Unreachable("connection reset", sent=True)

    api.replace = answer_lost  # type: ignore[assignment, method-assign]
    await ended(asyncio.create_task(a.shards.run()))
    assert holders(api) == {""}


async def test_a_replica_that_ends_leaves_what_others_took_alone() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    await a.tick()
    await b.tick()
    await b.tick(16)
    await ended(asyncio.create_task(a.shards.run()))
    assert holders(api) == {"b"}


async def test_leases_that_may_not_be_released_do_not_keep_a_replica_from_ending() -> None:
    api = ScriptedApi()
    a = Replica(api, "a")
    await a.tick()
    api.answers = [ApiError(403, "Forbidden", "not allowed") for _ in range(9)]
    await ended(asyncio.create_task(a.shards.run()))
    assert holders(api) == {"a"}


async def test_a_lease_that_lapsed_is_taken_over_again_though_nobody_else_held_it() -> None:
    """After a pause, or an outage of the apiserver: changes meanwhile were not planned, and are not queued either."""
    api = ScriptedApi()
    a = Replica(api, "a")
    await a.tick()
    owned: list[bool] = []

    async def look(gained: frozenset[int]) -> None:
        owned.append(a.shards.owns("ns", "x"))
        a.gained.append(gained)

    a.shards.on_change(look, lambda _: None)
    assert await a.tick(60) == {0}
    assert (a.gained, owned) == ([{0}, {0}], [False])
    assert a.shards.owns("ns", "x")


async def test_a_renewal_in_time_is_no_new_tenure() -> None:
    a = Replica(ScriptedApi(), "a")
    for _ in range(5):
        assert await a.tick(9) == {0}
    assert a.gained == [{0}]


async def test_what_a_pass_began_in_an_earlier_tenure_is_not_written_in_a_later_one() -> None:
    a = Replica(ScriptedApi(), "a")
    await a.tick()
    fence = a.shards.fence("ns", "x")
    assert fence.may_send()
    assert fence.seconds_left() == 10
    await a.tick(9)
    assert fence.may_send()
    assert fence.seconds_left() == 10
    await a.tick(60)
    assert a.shards.owns("ns", "x")
    assert not fence.may_send()
    assert fence.seconds_left() <= 0


async def test_writes_go_on_while_a_replica_that_ends_still_holds_its_lease() -> None:
    a = Replica(ScriptedApi(), "a")
    await a.tick()
    fence = a.shards.fence("ns", "x")
    a.shards.retire()
    assert not fence.may_send()
    assert fence.seconds_left() == 10


def names(api: ScriptedApi) -> set[str]:
    return set(api.objects)


async def test_a_replica_that_ends_takes_its_membership_with_it() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=2), Replica(api, "b", count=2)
    for _ in range(2):
        await a.tick(2)
        await b.tick(2)
    assert {"flotilla-cloneset-member-a", "flotilla-cloneset-member-b"} <= names(api)
    await ended(asyncio.create_task(a.shards.run()))
    assert names(api) == {"flotilla-cloneset-0", "flotilla-cloneset-1", "flotilla-cloneset-member-b"}


@pytest.mark.parametrize("verb", ["replace", "delete"])
async def test_a_replica_that_ends_tries_again_after_an_answer_that_did_not_come(verb: str) -> None:
    """Applies to the release of a shard, and to the removal of its membership."""
    api = ScriptedApi()
    a = Replica(api, "a", count=2)
    await a.tick()
    answers = getattr(api, verb)

    async def answer_lost(*arguments: object, **options: str) -> bytes:
        setattr(api, verb, answers)
        await answers(*arguments, **options)
        raise Unreachable("connection reset", sent=True)

    running = asyncio.create_task(a.shards.run())
    await asyncio.sleep(0)
    setattr(api, verb, answer_lost)
    with capture_logs() as logs:
        await ended(running)
    assert names(api) == {"flotilla-cloneset-0", "flotilla-cloneset-1"}
    assert holders(api) == {""}
    assert logs == [], "nothing to warn of: it was done in the end"


async def test_the_membership_of_a_killed_replica_is_removed_once() -> None:
    """Each replica has a name of its own: the memberships of killed ones would pile up."""
    api = ScriptedApi()
    a, b, c = (Replica(api, name, count=2) for name in "abc")
    for replica in (a, b, c):
        await replica.tick()
    for _ in range(29):  # 58 of 60 s since it was first seen
        for replica in (b, c):
            await replica.tick(2)
    assert "flotilla-cloneset-member-a" in names(api)
    for _ in range(3):
        for replica in (b, c):
            await replica.tick(2)
    members = {"flotilla-cloneset-member-b", "flotilla-cloneset-member-c"}
    assert names(api) == {"flotilla-cloneset-0", "flotilla-cloneset-1", *members}
    assert [verb for verb, _, _ in api.requests].count("delete") == 1


async def test_a_replica_that_only_slept_is_a_member_again() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=2), Replica(api, "b", count=2)
    await a.tick()
    for _ in range(33):
        await b.tick(2)
    assert "flotilla-cloneset-member-a" not in names(api)
    for _ in range(3):
        await a.tick(66)
        await b.tick(2)
    assert "flotilla-cloneset-member-a" in names(api)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (ApiError(404, "NotFound", "gone"), False),
        (ApiError(409, "Conflict", "it renewed"), True),
        (ApiError(403, "Forbidden", "no"), True),
        (Unreachable("reset"), True),
    ],
    ids=["another was faster", "it is back", "not allowed", "no answer"],
)
async def test_a_membership_that_cannot_be_removed_costs_no_shard(answer: Exception, left: bool) -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=2), Replica(api, "b", count=2)
    await a.tick()
    remove = api.delete

    async def refuse(resource: Resource, namespace: str, name: str, **options: str) -> bytes:
        assert options["resource_version"] == api.objects[name]["metadata"]["resourceVersion"]  # type: ignore[index]
        if not left:
            await remove(resource, namespace, name)
        raise answer

    api.delete = refuse  # type: ignore[method-assign]
    for _ in range(40):
        await b.tick(2)
    assert b.shards.serving == {0, 1}
    assert ("flotilla-cloneset-member-a" in names(api)) is left
    api.delete = remove  # type: ignore[method-assign]
    await b.tick(2)
    assert "flotilla-cloneset-member-a" not in names(api)


async def test_a_removal_that_vanishes_leaves_no_time_for_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases_module, "REQUEST_SHARE", leases_module.REQUEST_SHARE / 1000)
    api = Swallowing()
    a, b = Replica(api, "a", count=2), Replica(api, "b", count=2)
    await a.tick()
    for _ in range(30):
        await b.tick(2)
    api.loses = ["delete"]
    b.clock.advance(2)
    assert not await b.shards.tick()
    assert await b.shards.tick()
    assert "flotilla-cloneset-member-a" not in names(api)


async def test_versions_that_go_back_end_the_process() -> None:
    """etcd was restored: tables would refuse everything that is older than what they hold."""
    api = ScriptedApi()
    a = Replica(api, "a")
    api.version = 100
    await a.tick()
    api.version = 50
    with pytest.raises(VersionsWentBack, match="of leases went back from 100 to 50: etcd was restored"):
        await a.tick(2)


async def test_a_lease_that_is_older_than_we_left_it_ends_the_process() -> None:
    """etcd was restored, and as many writes as were lost have been made since."""
    api = ScriptedApi()
    a = Replica(api, "a")
    await a.tick()
    backup = copy.deepcopy(api.objects)
    await a.tick(5)
    await a.tick(5)
    api.objects = backup
    with pytest.raises(VersionsWentBack, match="of flotilla-cloneset-0 went back"):
        await a.tick(2)


async def test_a_resync_that_is_older_than_what_is_known_ends_the_process() -> None:
    a = Replica(ScriptedApi(), "a")

    async def gain(gained: frozenset[int]) -> None:
        raise VersionsWentBack("etcd was restored")

    a.shards.on_change(gain, lambda _: None)
    assert not await a.tick()
    with pytest.raises(VersionsWentBack):
        await a.tick()


async def settle(*replicas: Replica) -> frozenset[int]:
    """Run some rounds of each; return the shards that they serve together."""
    for _ in range(3):
        for replica in replicas:
            await replica.tick(2)
    return frozenset[int]().union(*(replica.shards.serving for replica in replicas))


async def test_replicas_with_another_number_take_over_when_the_last_old_one_ends() -> None:
    """As in a rolling update, one by one: shards that an old one releases go to another old one."""
    api = ScriptedApi()
    a, b, c, d = Replica(api, "a", 4), Replica(api, "b", 4), Replica(api, "c", 2), Replica(api, "d", 2)
    assert await settle(a, b) == {0, 1, 2, 3}
    assert await settle(c) == frozenset()
    await a.shards._hand_over([])
    assert await c.tick(2) == frozenset()
    assert await b.tick(2) == {0, 1, 2, 3}
    assert await settle(b, c, d) == b.shards.serving
    await b.shards._hand_over([])
    assert await settle(c, d) == {0, 1}
    assert len(c.shards.serving) == len(d.shards.serving) == 1


async def test_a_killed_replica_with_another_number_is_waited_out() -> None:
    api = ScriptedApi()
    old, new = Replica(api, "a", 4), Replica(api, "b")
    await old.tick()
    await new.tick()
    assert await new.tick(14) == frozenset()
    assert await new.tick(2) == {0}


async def test_of_two_numbers_that_begin_at_once_one_works() -> None:
    api = ScriptedApi()
    one, four = Replica(api, "a"), Replica(api, "b", 4)
    await asyncio.gather(one.tick(), four.tick())
    for _ in range(3):
        assert [bool(replica.shards.serving) for replica in (one, four)].count(True) == 1
        await asyncio.gather(one.tick(2), four.tick(2))


async def test_a_replica_that_finds_another_number_on_the_first_shard_lets_go() -> None:
    """It acquired a shard because of what it had read just before the other acquired the first one."""
    api = ScriptedApi()
    four, one = Replica(api, "a", 4), Replica(api, "b")
    assert await four.tick() == {0, 1, 2, 3}
    first = api.objects["flotilla-cloneset-0"]
    first["metadata"]["labels"][shards_module.NUMBER_LABEL] = "1"
    first["spec"]["holderIdentity"] = "b"
    assert await four.tick(2) == frozenset()
    assert await one.tick(2) == {0}


async def test_the_number_of_a_release_that_did_not_say_it_is_taken_for_ours() -> None:
    api = ScriptedApi()
    first, second = Replica(api, "a", 2), Replica(api, "b", 2)
    await first.tick()
    for lease in api.objects.values():
        del lease["metadata"]["labels"][shards_module.NUMBER_LABEL]
    assert await settle(second, first) == {0, 1}
    assert len(second.shards.serving) == 1


async def test_shards_beyond_the_number_are_removed_when_nobody_comes_back_for_them() -> None:
    """A killed replica leaves its name on them: one that starts later would wait for it each time."""
    api = ScriptedApi()
    old, new = Replica(api, "a", 4), Replica(api, "b", 2)
    await old.tick()
    await new.tick()
    assert await new.tick(16) == {0}
    assert await new.tick(2) == {0, 1}
    assert "flotilla-cloneset-3" in api.objects
    for _ in range(30):
        await new.tick(2)
    assert {name for name in api.objects if "member" not in name} == {"flotilla-cloneset-0", "flotilla-cloneset-1"}
    assert "flotilla-cloneset-member-a" not in api.objects
    await new.shards._hand_over([])
    later = Replica(api, "c", 2)
    assert await later.tick() == {0, 1}


async def test_replicas_give_way_while_a_shard_is_held_that_they_do_not_know() -> None:
    """A release with a lease for each resource, and one with fewer: neither publishes what the other does."""
    api = ScriptedApi()
    old, new = Replica(api, "a", names=("pods", "nodes", "claims")), Replica(api, "b", names=("pods", "others"))
    old.shards._gives_way = lambda: False  # as in a release without this rule
    assert await settle(old) == {0, 1, 2}
    for _ in range(4):
        assert await settle(old, new) == old.shards.serving
    await old.shards._hand_over([])
    assert await settle(new) == {0, 1}
    await settle(old)
    assert await settle(new) == frozenset(), "after a downgrade"
    assert await settle(old) == {0, 1, 2}


async def test_a_killed_replica_with_other_names_is_waited_out() -> None:
    api = ScriptedApi()
    old, new = Replica(api, "a", names=("pods", "nodes")), Replica(api, "b", names=("pods", "others"))
    await old.tick()
    assert await new.tick() == frozenset()
    assert await new.tick(14) == frozenset()
    await new.tick(2)
    assert await settle(new) == {0, 1}


async def test_of_two_lists_of_names_the_longer_one_works() -> None:
    api = ScriptedApi()
    one, two = Replica(api, "a", names=("pods", "others")), Replica(api, "b", names=("pods", "pods-1", "others"))
    assert await settle(one) == {0, 1}
    await settle(one, two)
    assert await settle(one, two) == two.shards.serving == {0, 1, 2}
    await two.shards._hand_over([])
    assert await settle(one) == {0, 1}


async def test_released_shards_with_unknown_names_are_removed_when_none_is_held() -> None:
    api = ScriptedApi()
    old, new = Replica(api, "a", names=("pods", "nodes", "claims")), Replica(api, "b", names=("pods", "others"))
    await settle(old)
    await settle(new)
    await old.shards._hand_over([])
    nodes = api.objects["flotilla-cloneset-nodes"]
    nodes["spec"]["holderIdentity"] = "c"
    await settle(new)
    assert "flotilla-cloneset-claims" in api.objects
    nodes["spec"]["holderIdentity"] = ""
    await settle(new)
    assert {name for name in api.objects if "member" not in name} == {
        "flotilla-cloneset-pods",
        "flotilla-cloneset-others",
    }


async def test_held_shards_are_announced_before_their_resync_and_after_others_lapsed() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", count=2), Replica(api, "b", count=2)
    await a.tick()
    assert a.calls == [("held", {0, 1}), ("gain", {0, 1})]
    for _ in range(3):
        await a.tick(2)
    assert len(a.calls) == 2, "a renewal changes nothing"
    await b.tick()
    await a.tick(2)
    assert a.calls[2:] == [("held", {0})], "it let one go"
    assert b.calls == []
    await b.tick(2)
    assert b.calls == [("held", {1}), ("gain", {1})]


async def test_a_shard_that_another_replica_took_is_held_no_more() -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a"), Replica(api, "b")
    await a.tick()
    await b.tick()
    await b.tick(16)
    await a.tick(16)
    assert a.calls == [("held", {0}), ("gain", {0}), ("held", frozenset())]
    assert b.calls == [("held", {0}), ("gain", {0})]


@pytest.mark.parametrize("apart", [(0, 3), (0, 1), (2, 3)])
async def test_shards_that_are_shared_apart_are_on_different_replicas(apart: tuple[int, ...]) -> None:
    api = ScriptedApi()
    a, b = Replica(api, "a", 5, apart), Replica(api, "b", 5, apart)
    assert await a.tick() == {0, 1, 2, 3, 4}
    for _ in range(3):
        await b.tick(1)
        await a.tick(1)
    for one in (a, b):
        assert len(one.shards.serving & set(apart)) == 1
    assert a.shards.serving | b.shards.serving == {0, 1, 2, 3, 4}
    for _ in range(10):
        await b.tick(2)
    assert b.shards.serving == {0, 1, 2, 3, 4}
