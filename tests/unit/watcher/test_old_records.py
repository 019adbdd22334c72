"""The oldest messages of a stream on disk are stored again before too many gaps follow them."""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Bus, BusError, Message
from flotilla_common.bus.pod_shards import pod_shards
from flotilla_watcher import metrics
from flotilla_watcher.old_records import CHECK_SECONDS, GONE_SECONDS, OldRecords
from tests.support.fake_bus import FakeBus
from tests.support.fake_clock import FakeClock

WHY = subjects.WHY_STREAM.name
GAPS = 10


@pytest.fixture(autouse=True)
def _no_figures_of_other_tests() -> Iterator[None]:
    metrics.GAPS.clear()
    yield
    metrics.GAPS.clear()


def why(name: str) -> str:
    return subjects.why(CLONE_SET, "shop", name)


class Bench:
    def __init__(self, resources: Sequence[Resource] = (POD, CLONE_SET), most_messages: int = 100) -> None:
        self.bus = FakeBus()
        self.clock = FakeClock()
        self.held = True
        self.old = OldRecords(
            bus=cast("Bus", self.bus),
            clock=self.clock,
            streams=subjects.RECORDS,
            resources=resources,
            fence=lambda: self.held,
            most_gaps=GAPS,
            most_messages=most_messages,
        )

    async def open(self, *existing: str, marker: str = subjects.SYNCED) -> "Bench":
        """Create the streams; `existing` CloneSets are on the bus."""
        for spec in (*subjects.RECORDS, subjects.kube_stream(CLONE_SET)):
            await self.bus.ensure_stream(spec)
        for name in existing:
            await self.bus.publish(subjects.kube(CLONE_SET, "shop", name), b"{}", {subjects.OP: subjects.ADDED})
        await self.mark(CLONE_SET, marker)
        return self

    async def complete(self, resource: Resource) -> None:
        """Create the stream of a resource, and mark it as complete."""
        await self.bus.ensure_stream(subjects.kube_stream(resource))
        await self.mark(resource)

    async def mark(self, resource: Resource, state: str = subjects.SYNCED, epoch: str = "0.a") -> None:
        marker = subjects.Marker(epoch=epoch, state=state)
        await self.bus.publish(subjects.kube_marker(resource), msgspec.json.encode(marker))

    async def decide(
        self, name: str, times: int = 1, *, age: float = 2 * GONE_SECONDS, resource: Resource = CLONE_SET
    ) -> None:
        """Publish decisions about an object; the last one is stored."""
        subject = subjects.why(resource, "shop", name)
        for number in range(times):
            await self.bus.publish(subject, f"{name} {number}".encode(), {"x": "1"})
        held = self.bus.streams[WHY].messages
        held[subject] = msgspec.structs.replace(held[subject], stored_at=self.clock.now().timestamp() - age)

    @property
    def held_messages(self) -> dict[str, Message]:
        return {subject.rpartition(".")[2]: one for subject, one in self.bus.streams[WHY].messages.items()}

    def gaps(self) -> float | None:
        """Return the figure on the metrics page."""
        samples = [sample for family in metrics.GAPS.collect() for sample in family.samples]
        return next((sample.value for sample in samples if sample.labels["stream"] == WHY), None)


async def test_an_old_message_before_many_replaced_ones_is_stored_again() -> None:
    bench = await Bench().open("old", "busy")
    await bench.decide("old")
    await bench.decide("busy", GAPS + 2)
    await bench.old.check()
    assert bench.bus.renewed == [why("old")]
    old = bench.held_messages["old"]
    assert (old.data, old.headers) == (b"old 0", {"x": "1", subjects.AGAIN: "true"})
    assert bench.gaps() == 0


async def test_nothing_is_done_while_there_are_few_gaps() -> None:
    bench = await Bench().open("old", "busy")
    await bench.decide("old")
    await bench.decide("busy", GAPS + 1)
    await bench.old.check()
    assert bench.bus.renewed == []
    assert bench.gaps() == GAPS


async def test_messages_move_only_until_the_gaps_are_few() -> None:
    bench = await Bench().open("a", "b", "busy")
    await bench.decide("a")
    await bench.decide("busy", 6)
    await bench.decide("b")
    await bench.decide("busy", 8)
    await bench.old.check()
    assert bench.bus.renewed == [why("a")]
    assert bench.gaps() == 7


async def test_one_check_handles_a_limited_number_of_messages() -> None:
    names = [f"old-{number}" for number in range(5)]
    bench = await Bench(most_messages=2).open(*names, "busy")
    for name in names:
        await bench.decide(name)
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert bench.bus.renewed == [why(name) for name in names[:2]]
    await bench.old.check()
    assert bench.bus.renewed == [why(name) for name in names[:4]]


async def test_a_newer_message_is_never_replaced_by_an_older_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await Bench().open("old", "busy")
    await bench.decide("old")
    await bench.decide("busy", 2 * GAPS)
    read = bench.bus.get_oldest

    async def read_before_a_change(stream: str) -> Message | None:
        found = await read(stream)
        if bench.held_messages["old"].data == b"old 0":
            await bench.bus.publish(why("old"), b"newer")
        return found

    monkeypatch.setattr(bench.bus, "get_oldest", read_before_a_change)
    await bench.old.check()
    assert bench.held_messages["old"].data == b"newer"
    assert bench.bus.renewed == []


async def test_a_message_about_an_object_that_is_gone_is_removed() -> None:
    bench = await Bench().open("busy")
    await bench.bus.publish(subjects.kube(CLONE_SET, "shop", "deleted"), b"{}", {subjects.OP: subjects.DELETED})
    await bench.decide("deleted")
    await bench.decide("unknown")
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert bench.held_messages.keys() == {"busy"}
    assert bench.bus.renewed == []


@pytest.mark.parametrize(("state", "age"), [(subjects.LISTING, 2 * GONE_SECONDS), (subjects.SYNCED, GONE_SECONDS / 2)])
async def test_an_object_may_be_missing_on_the_bus_for_a_while(state: str, age: float) -> None:
    """While the stream is being filled, and while the watcher is behind the service."""
    bench = await Bench().open("busy", marker=state)
    await bench.decide("missing", age=age)
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert bench.bus.renewed == [why("missing")]


async def test_a_stream_that_is_wiped_in_between_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await Bench().open("busy")
    await bench.decide("missing")
    await bench.decide("busy", 2 * GAPS)
    read = bench.bus.get_last

    async def read_while_refilled(stream: str, subject: str) -> Message | None:
        found = await read(stream, subject)
        if subject == subjects.kube(CLONE_SET, "shop", "missing"):
            await bench.mark(CLONE_SET, epoch="0.b")
        return found

    monkeypatch.setattr(bench.bus, "get_last", read_while_refilled)
    await bench.old.check()
    assert bench.bus.renewed == [why("missing")]


async def test_a_decision_about_an_unknown_kind_is_kept() -> None:
    bench = await Bench().open("busy")
    subject = "why.v1.novelties.shop.old"
    await bench.bus.publish(subject, b"1")
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert bench.bus.renewed == [subject]


async def test_objects_of_two_groups_may_share_a_plural() -> None:
    """Kubernetes' StatefulSets and ours: a decision is kept while one of both exists."""
    bench = await Bench((STATEFUL_SET, BUILT_IN_STATEFUL_SET)).open()
    for resource in (STATEFUL_SET, BUILT_IN_STATEFUL_SET):
        await bench.complete(resource)
    await bench.bus.publish(subjects.kube(STATEFUL_SET, "shop", "ours"), b"{}", {subjects.OP: subjects.ADDED})
    for name in ("ours", "gone"):
        await bench.decide(name, resource=STATEFUL_SET)
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert bench.held_messages.keys() == {"ours", "busy"}


async def test_a_replica_without_the_lease_does_nothing() -> None:
    bench = await Bench().open("old", "busy")
    await bench.decide("old")
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert bench.gaps() is not None
    await bench.decide("busy", 2 * GAPS)
    bench.held = False
    await bench.old.check()
    assert bench.bus.renewed == [why("old")]
    assert bench.gaps() is None


async def test_it_goes_on_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await Bench().open("old", "busy")
    await bench.decide("old")
    await bench.decide("busy", 2 * GAPS)
    bench.bus.connected = False
    with pytest.raises(BusError):
        await bench.old.check()
    pauses: list[float] = []

    class Enough(Exception):
        pass

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            bench.bus.connected = True
        if len(pauses) == 3:
            raise Enough

    monkeypatch.setattr(bench.clock, "sleep", sleep)
    with pytest.raises(Enough):
        await bench.old.run()
    assert pauses == [CHECK_SECONDS] * 3
    assert bench.bus.renewed == [why("old")]


@pytest.mark.parametrize(
    ("states", "removed"),
    [
        pytest.param((subjects.PART, subjects.PART), True, id="complete"),
        pytest.param((subjects.PART, subjects.LISTING), False, id="one is being listed"),
        pytest.param((subjects.PART, None), False, id="one is missing"),
    ],
)
async def test_a_pod_is_gone_when_no_shard_has_it(states: tuple[str | None, ...], removed: bool) -> None:
    bench = await Bench().open("busy")
    for shard, state in zip(pod_shards(2), states, strict=True):
        if state is not None:
            await bench.bus.ensure_stream(subjects.kube_stream(shard))
            marker = subjects.Marker(epoch="0.a", state=state, shards=2)
            await bench.bus.publish(subjects.kube_marker(shard), msgspec.json.encode(marker))
    await bench.decide("pod", resource=POD)
    await bench.decide("busy", 2 * GAPS)
    await bench.old.check()
    assert (bench.bus.renewed == []) is removed
