"""The lives of pods, from writes, decisions and what the pods show now."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.control.plan import Intent
from flotilla_console.story.lives import Life, Now, lives
from flotilla_console.story.tree import by_trouble, is_quiet, tree
from flotilla_insight.published import Act, Why
from tests.unit.console.story.records_of_rollouts import at, decision, in_place, write


def lived(writes: Iterable[Act] = (), now: Now | None = None, decisions: Iterable[Why] = ()) -> Life:
    (life,) = lives(list(writes), decisions, [now] if now else [], at(0), at(1000))
    return life


def phases(life: Life) -> list[tuple[float, str]]:
    return [((phase.start - at(0)).total_seconds(), phase.state) for phase in life.phases]


def pod(ready: bool = True, since: float = 0, **more: Any) -> Now:
    known: dict[str, Any] = {"name": "web-1", "created": at(0), "revision": "web-2"}
    return Now(ready=ready, since=at(since), **known | more)


def deletion(seconds: float) -> Act:
    return write(seconds, "web-1", "delete", intent=Intent.RECREATE)


CASES: dict[str, tuple[list[Act], Now | None, list[Why], list[tuple[float, str]]]] = {
    "an update in place lasts until the refresh": (
        list(in_place(10, "web-1", takes=5)),
        pod(since=15),
        [],
        [(0, "exists"), (10, "updating"), (15, "ready")],
    ),
    "a created pod is ready when it says so": (
        [write(10, "web-1")],
        pod(since=17),
        [],
        [(10, "creating"), (17, "ready")],
    ),
    "or when a decision saw that all are ready": (
        [write(10, "web-1"), *in_place(50, "web-1", takes=1)],
        pod(since=51),
        [decision(12, total=3, ready=2), decision(20, total=3, ready=3)],
        [(10, "creating"), (20, "ready"), (50, "updating"), (51, "ready")],
    ),
    "a decision before the creation says nothing": (
        [write(10, "web-1")],
        pod(ready=False, since=10),
        [decision(9, total=3, ready=3)],
        [(10, "creating")],
    ),
    "a pod of the same name is created again": (
        [deletion(10), write(12, "web-1")],
        pod(since=20),
        [],
        [(0, "exists"), (10, "deleted"), (12, "recreating"), (20, "ready")],
    ),
    "a refresh that was lost is seen on the pod": (
        list(in_place(10, "web-1", takes=None)),
        pod(since=30),
        [],
        [(0, "exists"), (10, "updating"), (30, "ready")],
    ),
    "readiness from before the update ends nothing": (
        list(in_place(10, "web-1", takes=None)),
        pod(since=5),
        [],
        [(0, "exists"), (10, "updating")],
    ),
    "a pod that failed later is not ready": (
        list(in_place(10, "web-1")),
        pod(ready=False, since=500),
        [],
        [(0, "exists"), (10, "updating"), (11, "ready"), (500, "not ready")],
    ),
    "a write that failed begins nothing": (
        [write(10, "web-1", outcome="Denied")],
        None,
        [],
        [],
    ),
    "a pod without records has only what it shows": ([], pod(since=40), [], [(0, "exists"), (40, "ready")]),
    "a pod that is being deleted": (
        [deletion(10)],
        pod(terminating=True),
        [],
        [(0, "exists"), (10, "deleted"), (10, "terminating")],
    ),
    "the creation alone was lost": (
        list(in_place(10, "web-1")),
        None,
        [],
        [(0, "exists"), (10, "updating"), (11, "ready")],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_life(case: tuple[list[Act], Now | None, list[Why], list[tuple[float, str]]]) -> None:
    writes, now, decisions, expected = case
    assert phases(lived(writes, now, decisions)) == expected


def test_a_life_has_a_phase_at_each_moment_after_its_beginning() -> None:
    life = lived([write(10, "web-1"), deletion(20)])
    found = [life.at(at(seconds)) for seconds in (9, 10, 19, 20, 999)]
    assert [phase and phase.state for phase in found] == [None, "creating", "creating", "deleted", "deleted"]


@given(st.permutations([*in_place(10, "web-1"), deletion(20), write(22, "web-1"), *in_place(40, "web-1")]))
def test_records_that_are_late_or_out_of_order_leave_phases_in_order(writes: list[Act]) -> None:
    starts = [phase.start for phase in lived(sorted(writes, key=lambda one: one.at), pod(since=45)).phases]
    assert starts == sorted(starts)


def test_the_tree_is_that_of_the_moment() -> None:
    writes = [*in_place(10, "web-1", takes=5), *in_place(20, "web-2", takes=5, revision="web-3"), write(30, "web-3")]
    found = lives(writes, [], [], at(0), at(1000))
    shown = [[(branch.revision, branch.pods) for branch in tree(found, at(seconds))] for seconds in (5, 12, 22, 31)]
    assert shown == [
        [("", (("web-1", "exists"), ("web-2", "exists")))],
        [("", (("web-2", "exists"),)), ("web-2", (("web-1", "updating"),))],
        [("web-2", (("web-1", "ready"),)), ("web-3", (("web-2", "updating"),))],
        [("web-2", (("web-3", "creating"), ("web-1", "ready"))), ("web-3", (("web-2", "ready"),))],
    ]


def test_a_deleted_pod_is_in_no_tree() -> None:
    assert tree([lived([write(10, "web-1"), deletion(20)])], at(21)) == []


def test_troubled_pods_come_first_and_untouched_ones_last() -> None:
    refused = write(60, "web-d", "patch", outcome="Denied")
    writes = [*in_place(50, "web-a"), *in_place(50, "web-b", takes=None), write(40, "web-d"), refused]
    quiet = Now(name="web-0", ready=True, since=at(1), created=at(0))
    broken = Now(name="web-c", ready=False, since=at(70), created=at(0))
    found = lives(writes, [], [quiet, broken], at(0), at(1000))
    assert [life.name for life in by_trouble(found, at(30), at(100))] == ["web-d", "web-c", "web-b", "web-a", "web-0"]
    assert [life.name for life in found if is_quiet(life, at(30), at(100))] == ["web-0"]
