"""The timeline of a workload."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import DEPLOYMENT
from flotilla_console.blocks.types import AnyBlock, Gap, Group, Lanes, Point, Slider
from flotilla_console.page import Page
from flotilla_console.pages.as_it_was import MOST_MOMENTS
from flotilla_console.pages.timeline import build, page
from flotilla_console.story.records import Recorded, RecordReader
from flotilla_insight.published import Act, Why
from tests.support.fake_clock import FakeClock
from tests.unit.console.model.worlds import NOW, Only, World, column, table, texts
from tests.unit.console.story.records_of_rollouts import at, change, decision, in_place, write
from tests.unit.console.story.test_records import Streams, stored

PLACE: dict[str, Any] = {"group": "apps.kruise.io", "plural": "clonesets", "namespace": "shop", "name": "web"}

ROLLOUT: list[Act | Why] = [
    change(0),
    decision(0.1, replicas=3, total=3, ready=3, available=3, maxUnavailable=1),
    *in_place(0.2, "web-1", takes=4),
    decision(
        0.3, reason="maxUnavailable 1 is used by web-1", replicas=3, total=3, ready=2, available=2, maxUnavailable=1
    ),
    decision(5, replicas=3, total=3, ready=3, available=3, maxUnavailable=1),
    *in_place(5.1, "web-2", takes=None),
    write(6, "web-0", "patch", outcome="Denied", message="exceeded quota"),
]


def world(pods: int = 3) -> World:
    made = World()
    made.clone_set()
    for number in range(pods):
        made.pod(f"web-{number}")
    return made


def recorded(parts: Iterable[Act | Why], **more: Any) -> Recorded:
    known = list(parts)
    return Recorded(
        acts=tuple(part for part in known if isinstance(part, Act)),
        decisions=tuple(part for part in known if isinstance(part, Why)),
        **more,
    )


def built(
    parts: Iterable[Act | Why] = ROLLOUT, allowed: Any = None, pods: int = 3, read: Recorded | None = None, **query: str
) -> Page:
    found = build(world(pods).request(allowed, read or recorded(parts), query, **PLACE))
    assert found is not None
    return found


def block(found: Page, kind: type[Any]) -> Any:
    return next(one for one in found.blocks if isinstance(one, kind))


def lanes(found: Page) -> Lanes:
    return block(found, Lanes)


def test_each_pod_has_a_lane_with_its_states_and_writes_the_troubled_first() -> None:
    shown = lanes(built())
    assert [lane.label for lane in shown.lanes] == ["web-0", "web-2", "web-1"]
    failed, pending, done = shown.lanes
    assert [tick.tone for tick in failed.ticks] == ["bad"]
    assert "exceeded quota" in failed.ticks[0].detail
    assert [span.label for span in pending.spans][-1] == "updating in place"
    assert [span.label for span in done.spans] == ["no record yet", "ready", "updating in place", "ready"]
    assert done.href == "/pods/shop/web-1"
    assert (shown.start, shown.end) == (at(0).timestamp(), NOW)


def test_unavailable_pods_are_a_line_against_max_unavailable() -> None:
    shown, zero = lanes(built()), at(0).timestamp()
    assert shown.line == (Point(zero + 0.1, 0), Point(zero + 0.3, 1), Point(zero + 5, 0))
    assert shown.ceiling == (Point(zero + 0.1, 1),)


def test_the_time_in_which_nothing_happened_is_squeezed() -> None:
    assert lanes(built()).gaps == (Gap(at(8).timestamp(), NOW - 2),)


def test_a_restart_of_the_service_is_marked() -> None:
    found = lanes(built([*ROLLOUT, decision(7, replica="r2")]))
    assert [tick.label for tick in found.ticks if tick.tone == "warn"] == ["cloneset restarted or handed over"]


@pytest.mark.parametrize(
    ("seconds", "states"),
    [
        ("0", {"web-0": "no record yet", "web-1": "no record yet", "web-2": "no record yet"}),
        ("0.1", {"web-0": "ready", "web-1": "ready", "web-2": "ready"}),
        ("1", {"web-0": "ready", "web-1": "updating in place", "web-2": "ready"}),
        ("4.5", {"web-0": "ready", "web-1": "ready", "web-2": "ready"}),
        ("5.5", {"web-1": "ready", "web-2": "updating in place"}),
    ],
)
def test_the_slider_shows_the_pods_as_they_were(seconds: str, states: dict[str, str]) -> None:
    found = built(at=f"{at(float(seconds)).timestamp():.3f}")
    pods = table(found, "pods")
    shown = dict(zip(column(pods, "name"), column(pods, "state"), strict=True))
    assert {name: shown[name] for name in states} == states


def test_the_tree_has_the_pods_of_each_revision() -> None:
    found = table(built(at=f"{at(5.5).timestamp():.3f}"), "tree")
    rows = dict(zip(column(found, "revision"), column(found, "names"), strict=True))
    assert "web-1 (ready)" in rows["web-2"]
    assert "web-2 (updating in place)" in rows["web-2"]


@pytest.mark.parametrize("asked", ["", "nan", "inf", "-1e300", "1e300", "x", "0x1", "99999999999999999"])
def test_any_moment_can_be_asked_for(asked: str) -> None:
    slider: Slider = block(built(at=asked), Slider)
    assert slider.value in {choice.value for choice in slider.values}


def test_the_slider_has_a_limited_number_of_moments_with_the_last_one() -> None:
    parts = [change(0), *(write(number / 10, f"web-{number}") for number in range(1000))]
    slider: Slider = block(built(parts), Slider)
    assert len(slider.values) <= MOST_MOMENTS
    assert slider.value == slider.values[-1].value == f"{NOW:.3f}"


def test_records_that_came_twice_or_late_change_nothing() -> None:
    assert built(reversed([*ROLLOUT, *ROLLOUT])) == built(ROLLOUT)


def test_an_earlier_generation_can_be_chosen() -> None:
    parts = [change(0, 2), *in_place(1, "web-1"), change(100, 3), *in_place(101, "web-2", revision="web-3")]
    last, first = lanes(built(parts)), lanes(built(parts, generation="2"))
    assert last.start == first.end == at(100).timestamp()
    assert [len(lane.ticks) for lane in first.lanes if lane.label == "web-2"] == [0]
    assert built(parts, generation="7") == built(parts, generation="x") == built(parts)
    assert "generation=2" in texts(built(parts))


def test_a_thousand_pods_are_shown_in_windows() -> None:
    parts = [change(0), *in_place(1, "web-999", takes=None)]
    first, last = built(parts, pods=1000), built(parts, pods=1000, offset="900")
    assert (len(lanes(first).lanes), lanes(first).lanes[0].label) == (100, "web-999")
    assert lanes(first).caption == "1000 pods, 999 of them ready all the time"
    assert table(last, "pods").total == 1000
    assert not {lane.key for lane in lanes(first).lanes} & {lane.key for lane in lanes(last).lanes}


def test_impossible_records_are_counted_and_harm_no_other() -> None:
    naive = msgspec.structs.replace(write(1, "web-1"), at=at(1).replace(tzinfo=None))
    old, future = (msgspec.structs.replace(write(1, "web-1"), at=at(1).replace(year=year)) for year in (1, 9999))
    numbers = decision(3, replicas=10**30, available=-(10**30), maxUnavailable=-5)
    hostile = write(4, "<script>" * 100, cause="\x00\u202e" * 50, message="x" * 10_000, latency_ms=float("inf"))
    found = built([*ROLLOUT, naive, old, future, numbers, hostile])
    assert "3 records cannot be read, or have an impossible time." in texts(found)
    assert len(lanes(found).lanes) == 4


def test_the_page_says_what_is_missing() -> None:
    read = recorded(ROLLOUT, cut=7, unreadable=2, error="the bus is away", begins=at(-50))
    found = texts(built(read=read))
    for words in (
        "Not all is shown: the bus is away.",
        "The past is cut off: 7 older records are not shown.",
        "2 records cannot be read",
        "The record begins at",
    ):
        assert words in found


def test_who_may_not_list_pods_sees_no_pod() -> None:
    found = built(allowed=Only(clonesets=("shop",)))
    assert "You may not list pods" in texts(found)
    assert lanes(found).lanes == ()
    assert lanes(found).line
    assert not any(isinstance(one, Group | Slider) for one in found.blocks)


def test_who_may_not_list_the_workload_finds_no_page() -> None:
    assert build(world().request(Only(pods=("shop",)), recorded(ROLLOUT), **PLACE)) is None


def test_a_workload_without_records_has_a_page() -> None:
    assert "There are no records about this workload: the bus has none." in texts(built(()))


async def test_records_are_read_for_those_who_may_see_the_workload() -> None:
    bus = Streams(*stored(*ROLLOUT))
    spec = page(RecordReader(bus, FakeClock()))
    assert spec.prepare is not None
    assert await spec.prepare(world().request(Only(pods=("shop",)), **PLACE)) is None
    assert bus.reads == 0
    read = await spec.prepare(world().request(**PLACE))
    assert isinstance(read, Recorded)
    assert (len(read.acts), len(read.decisions)) == (7, 3)


async def test_no_records_are_read_for_kinds_of_kubernetes() -> None:
    made, bus = World(), Streams()
    made.put(DEPLOYMENT, "web", spec={"replicas": 1})
    request = made.request(group="apps", plural="deployments", namespace="shop", name="web")
    prepare = page(RecordReader(bus, FakeClock())).prepare
    assert prepare is not None
    assert await prepare(request) is None
    found: Page | None = build(request)
    assert bus.reads == 0
    assert "do not plan this kind" in texts(found)


def _kinds(blocks: Iterable[AnyBlock]) -> list[str]:
    return [type(one).__name__ for one in blocks]


def test_everything_is_also_in_words() -> None:
    found = built()
    assert _kinds(found.blocks)[-2:] == ["Table", "Group"]
    steps = column(table(found, "steps"), "text")
    assert any("maxUnavailable 1 is used by web-1" in text for text in steps)
    assert CLONE_SET.kind in found.title
