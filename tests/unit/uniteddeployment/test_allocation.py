"""The allocators of UnitedDeployment: the worked examples of uniteddeployment.md §7."""

import re

import pytest

from flotilla_common.api.meta import IntOrString
from flotilla_topology.uniteddeployment.allocation import Allocation, AllocationError, Child, Subset, allocate, scaled
from tests.testkit.tables import cases

SHARE = re.compile(r"(?P<name>[a-z])(?:=(?P<replicas>[^ ]+)|\((?P<least>[^,]*),(?P<most>[^)]*)\))?")


def value(text: str | None) -> IntOrString | None:
    """Return a number, a percentage, or None."""
    return None if not text else text if text.endswith("%") else int(text)


def subsets(text: str, children: dict[str, Child] | None = None) -> list[Subset]:
    """Parse subsets such as `a=1 b=50% c` or `a(2,4) b(,10%) c`."""
    found = [SHARE.fullmatch(word) for word in text.split()]
    return [
        Subset(
            name=match["name"],
            replicas=value(match["replicas"]),
            minimum=value(match["least"]),
            maximum=value(match["most"]),
            child=(children or {}).get(match["name"]),
        )
        for match in found
        if match
    ]


def numbers(text: str) -> Allocation:
    """Parse replicas such as `a1 b3`."""
    return {word[0]: int(word[1:]) for word in text.split()}


def shown(allocation: Allocation) -> str:
    """Return the notation that `numbers` parses."""
    return " ".join(f"{name}{replicas}" for name, replicas in sorted(allocation.items()))


SPECIFIC = [
    ("S1", 6, "a=1 b=50% c", "", "a1 b3 c2"),
    ("S2", 10, "a b c", "", "a3 b3 c4"),
    ("S3", 11, "a b c", "", "a3 b4 c4"),
    ("S4", 7, "a b c", "a5 b1 c1", "a3 b2 c2"),
    ("S5", 8, "a b c", "a3 b3 c2", "a3 b3 c2"),
    ("S6", 0, "a b c", "a3 b3 c3", "a0 b0 c0"),
    ("S7", 5, "a=50% b", "", "a3 b2"),
    ("S8", 7, "a=33% b=33% c", "", "a2 b2 c3"),
    ("S9", 2, "a=0% b", "", "a0 b2"),
    ("S10", 4, "a=50% b=50%", "", "a2 b2"),
    ("S16", 0, "", "", ""),
    ("E2", 4, "a b c", "a2 b2", "a1 b2 c1"),
]


@pytest.mark.parametrize(("total", "spec", "current", "expected"), cases(SPECIFIC))
def test_fixed_numbers(total: int, spec: str, current: str, expected: str) -> None:
    children = {name: Child(replicas=replicas) for name, replicas in numbers(current).items()}
    assert shown(allocate(subsets(spec, children), total, adaptive=False, reserves=False)) == expected


CONTRADICTIONS = [
    ("S11", 3, "a=50% b=50%", "specified subsets' replica (4) is greater than UnitedDeployment replica (3)"),
    ("S12", 1, "a=50% b=50% c", "specified subsets' replica (2) is greater than UnitedDeployment replica (1)"),
    ("S13", 9, "a=4 b=4", "specified subsets' replica (8) is less than UnitedDeployment replica (9)"),
    ("S14", 8, "a=4 b=5", "specified subsets' replica (9) is greater than UnitedDeployment replica (8)"),
    ("S15", 3, "", "specified subsets' replica (0) is less than UnitedDeployment replica (3)"),
    ("M9", 10, "a(2,10%) b", "subset[0].maxReplicas(1) must be more than or equal to minReplicas(2)"),
]


@pytest.mark.parametrize(("total", "spec", "message"), cases(CONTRADICTIONS))
def test_numbers_that_contradict_the_total(total: int, spec: str, message: str) -> None:
    with pytest.raises(AllocationError, match=re.escape(message)):
        allocate(subsets(spec), total, adaptive=False, reserves=False)


BOUNDED = [
    ("M1", 9, "a(2,4) b(2,)", "a4 b5"),
    ("M2", 3, "a(2,4) b(2,)", "a2 b1"),
    ("M3", 12, "a(1,3) b(1,3) c", "a3 b3 c6"),
    ("M4", 10, "a(25%,50%) b(10%,)", "a5 b5"),
    ("M5", 5, "a(0,) b(3,)", "a2 b3"),
    ("M6", 9, "a(,2) b c(,5)", "a2 b7 c0"),
    ("M7", 1, "a(50%,50%) b(50%,)", "a1 b0"),
    ("M8", 0, "a(2,4) b(2,)", "a0 b0"),
    ("M9 at 20", 20, "a(2,10%) b", "a2 b18"),
    ("unreadable maximum", 5, "a(0,200%) b", "a0 b5"),
    ("unreadable minimum", 5, "a(200%,3) b", "a3 b2"),
]


@pytest.mark.parametrize(("total", "spec", "expected"), cases(BOUNDED))
def test_minimum_and_maximum(total: int, spec: str, expected: str) -> None:
    assert shown(allocate(subsets(spec), total, adaptive=False, reserves=False)) == expected


FOURS = "a(,4) b(,4) c"
ADAPTIVE = [
    ("A1", 6, FOURS, "", "", "a4 b2 c0"),
    ("A2", 6, FOURS, "a4 b0 c0", "b", "a4 b0 c2"),
    ("A3", 9, FOURS, "a4 b0 c2", "b", "a4 b0 c5"),
    ("A4", 9, FOURS, "a4 b0 c5", "", "a4 b0 c5"),
    ("A5", 10, FOURS, "a4 b0 c5", "", "a4 b1 c5"),
    ("A6", 6, FOURS, "a4 b0 c5", "", "a4 b0 c2"),
    ("A7", 7, FOURS, "a4 b2 c1", "b", "a4 b2 c1"),
    ("A8", 5, FOURS, "a4 b2 c1", "b", "a4 b1 c0"),
    ("A9", 6, "a(2,4) b", "a0 b2", "a", "a2 b4"),
    ("A10", 1, "a(2,4) b", "a0 b4", "a", "a1 b0"),
    ("A11", 8, "a(,2) b", "a4 b1", "", "a2 b6"),
    ("A12", 5, "a b", "a0 b0", "a b", "a0 b0"),
]


@pytest.mark.parametrize(("total", "spec", "placed", "stuck", "expected"), cases(ADAPTIVE))
def test_adaptive(total: int, spec: str, placed: str, stuck: str, expected: str) -> None:
    children = {
        name: Child(placed=replicas, unschedulable=name in stuck.split()) for name, replicas in numbers(placed).items()
    }
    assert shown(allocate(subsets(spec, children), total, adaptive=True, reserves=False)) == expected


THREES = "a(,3) b(,3) c"
RESERVED = [
    ("R1", 3, "a b", "", "a3 b0"),
    ("R2", 3, "a b", "a3/3U b0/0", "a3 b3"),
    ("R3", 3, "a b", "a3/2U b3/0", "a3 b2"),
    ("R4", 3, "a b", "a3/0M b2/0", "a3 b0"),
    ("R5", 5, "a b", "a3/3U b3/0", "a3 b5"),
    ("R6", 5, "a b", "a3/0M b5/0", "a5 b2"),
    ("R7", 5, "a b", "a5/2U b2/0", "a5 b2"),
    ("R8", 5, "a b", "a5/0M b2/0", "a5 b0"),
    ("R9", 2, "a b", "a3/3U b3/0", "a2 b2"),
    ("R10", 4, "a(3,) b", "a1/1U b1/0", "a1 b4"),
    ("R11", 6, THREES, "a3/0 b3/3U c0/0", "a3 b3 c3"),
    ("R12", 6, THREES, "a3/0 b3/1U c3/0", "a3 b3 c1"),
    ("R13", 9, THREES, "a3/0 b2/2U c0/0", "a3 b2 c6"),
    ("R14", 4, "a b", "a2/2U b4/4U", "a2 b4"),
]
CHILD = re.compile(r"(?P<name>[a-z])(?P<replicas>\d+)/(?P<reserved>\d+)(?P<mark>[UM]?)")


@pytest.mark.parametrize(("total", "spec", "children", "expected"), cases(RESERVED))
def test_with_reserved_pods(total: int, spec: str, children: str, expected: str) -> None:
    """`a3/2U`: three replicas, two of them reserved, unschedulable and marked; M: only marked."""
    read = {
        match["name"]: Child(
            replicas=int(match["replicas"]),
            reserved=int(match["reserved"]),
            unschedulable=match["mark"] == "U",
            marked=bool(match["mark"]),
        )
        for match in map(CHILD.fullmatch, children.split())
        if match
    }
    assert shown(allocate(subsets(spec, read), total, adaptive=True, reserves=True)) == expected


@pytest.mark.parametrize("text", ["-1%", "101%", "5", "12.5%", "%", "a%", "٣%"])
def test_text_that_is_no_percentage(text: str) -> None:
    with pytest.raises(ValueError, match="percentage"):
        scaled(text, 10)


def test_percentages_are_rounded_half_up() -> None:
    assert [scaled("50%", total) for total in range(6)] == [0, 1, 1, 2, 2, 3]
