"""Refusals name pods that are not available, if the last record on the bus names them."""

import asyncio
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.subjects import last_why
from flotilla_common.control.journal import Journal
from flotilla_common.control.plan import ObjectRef, Plan, Reason, State
from flotilla_webhook.budgets.reports import MAX_CHARACTERS, REST_SECONDS, WAIT_SECONDS
from tests.testkit.documents import Json
from tests.unit.webhook.budget_world import NAMESPACE, NOW, ToldBus, World, budget, pod

PLAIN = (
    'podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative'
    ": 3 of 3 pods are available and 3 must be"
)
REASONS = [
    {"code": "BudgetUsedUp", "message": "no budget is left", "state": "waiting"},
    {"code": "PodsUnavailable", "message": "1 pod unavailable: web-3 (not ready)", "state": "note"},
    {"code": "PodsMissing", "message": "1 of 4 pods does not exist", "state": "note"},
]
NAMED = f"{PLAIN}; 1 pod unavailable: web-3 (not ready); 1 of 4 pods does not exist"


class RecordBus(ToldBus):
    """A bus with a record for every budget, read by subject."""

    def __init__(self, record: bytes = b"") -> None:
        super().__init__()
        self.record = record
        self.asked: list[str] = []
        self.was_asked = asyncio.Event()
        self.hold: asyncio.Event | None = None
        """Answers wait for it."""

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        self.asked.append(subject)
        self.was_asked.set()
        if self.hold is not None:
            await self.hold.wait()
        return self.record


def record(uid: str = "u-pub", **members: Any) -> bytes:
    return msgspec.json.encode({"kind": "PodUnavailableBudget", "uid": uid, "reasons": REASONS} | members)


async def world_with(bus: RecordBus, *budgets: Json) -> World:
    return await World(*(budgets or (budget(0),)), bus=bus).watch()


async def message(world: World, name: str = "a") -> str:
    return (await world.delete(pod(name))).message


async def test_a_refusal_names_them() -> None:
    bus = RecordBus(record())
    world = await world_with(bus)
    assert await message(world) == NAMED
    assert bus.asked == ["$JS.API.DIRECT.GET.why.why.v1.podunavailablebudgets.default.pub"]
    assert (await world.evict(pod("b"))).message == NAMED
    assert {one["message"] for one in bus.told} == {NAMED}


async def test_the_controllers_own_record_is_read() -> None:
    """Read, for a refusal, the record that the controller's journal publishes."""
    bus = RecordBus()
    subject = ObjectRef.of(POD_UNAVAILABLE_BUDGET, ObjectMeta(name="pub", namespace=NAMESPACE, uid="u-pub"))
    world = await world_with(bus)
    plan = Plan(reasons=(Reason(State.NOTE, "PodsUnavailable", "1 pod unavailable: web-3 (not ready)"),))
    Journal(bus, world.clock, "policy", "1").why(subject, plan, trace="t")
    bus.record = msgspec.json.encode(bus.told[0])
    assert await message(world) == f"{PLAIN}; 1 pod unavailable: web-3 (not ready)"


async def test_it_follows_what_the_status_says() -> None:
    world = await world_with(RecordBus(record()), budget(0, status={"disruptedPods": {"b": NOW}}))
    held = "; the budget is held by b (deletion, until 2026-01-01T00:00:20Z at most)"
    assert await message(world) == PLAIN + held + NAMED.removeprefix(PLAIN)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(b"", id="none"),
        pytest.param(record("another"), id="of an earlier budget of the name"),
        pytest.param(record(reasons=REASONS[:1]), id="that names none"),
        pytest.param(b"{", id="broken"),
        pytest.param(record(reasons="none"), id="of another shape"),
        pytest.param(b'{"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}", id="deep"),
        pytest.param(record(x="y" * (64 << 10)), id="huge"),
    ],
)
async def test_records_that_say_nothing(given: bytes) -> None:
    assert await message(await world_with(RecordBus(given))) == PLAIN


async def test_a_long_text_is_cut() -> None:
    long = [{"code": "PodsUnavailable", "message": "x" * 5000}]
    text = await message(await world_with(RecordBus(record(reasons=long))))
    assert text == f"{PLAIN}; {'x' * (MAX_CHARACTERS - 3)}…"


async def test_refusals_that_come_together_share_a_read() -> None:
    bus = RecordBus(record())
    bus.hold = asyncio.Event()
    world = await world_with(bus)
    asking = [asyncio.create_task(message(world, f"p{number}")) for number in range(20)]
    await bus.was_asked.wait()
    bus.hold.set()
    assert set(await asyncio.gather(*asking)) == {NAMED}
    assert bus.asked == [last_why(POD_UNAVAILABLE_BUDGET, NAMESPACE, "pub")]


async def test_what_is_admitted_asks_nothing() -> None:
    bus = RecordBus(record())
    world = await world_with(bus, budget(1))
    assert (await world.delete(pod())).allowed
    full = {f"p{number}": NOW for number in range(2001)}
    crowded = await world_with(bus, budget(1, status={"disruptedPods": full}))
    assert "map too big" in await message(crowded)
    assert bus.asked == []


async def test_a_slow_bus_costs_a_moment_and_is_left_alone_then() -> None:
    bus = RecordBus(record())
    bus.hold = asyncio.Event()
    world = await world_with(bus)
    began = asyncio.get_running_loop().time()
    assert await message(world) == PLAIN
    assert WAIT_SECONDS <= asyncio.get_running_loop().time() - began < 1
    bus.hold.set()
    assert await message(world) == PLAIN
    assert len(bus.asked) == 1
    await world.clock.sleep(REST_SECONDS)
    assert await message(world) == NAMED


async def test_a_bus_that_fails_is_left_alone() -> None:
    bus = RecordBus()

    async def fail(subject: str, data: bytes, timeout: float) -> bytes:
        bus.asked.append(subject)
        raise BusError("no responders on it")

    bus.request = fail  # type: ignore[method-assign]
    world = await world_with(bus)
    assert [await message(world), await message(world)] == [PLAIN, PLAIN]
    assert len(bus.asked) == 1


async def test_an_absent_bus_is_not_asked() -> None:
    bus = RecordBus(record())
    bus.connected = False
    assert await message(await world_with(bus)) == PLAIN
    assert bus.asked == []


async def test_a_caller_that_gives_up_leaves_the_read_to_others() -> None:
    bus = RecordBus(record())
    bus.hold = asyncio.Event()
    world = await world_with(bus)
    first, second = (asyncio.create_task(message(world, name)) for name in ("a", "b"))
    await bus.was_asked.wait()
    first.cancel()
    bus.hold.set()
    assert await second == NAMED
    await asyncio.wait([first])
    assert first.cancelled()
