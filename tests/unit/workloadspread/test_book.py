"""Taking places and giving them back (workloadspread.md §5, §6 and §11)."""

from datetime import UTC, datetime

import pytest

from flotilla_common.api.kinds.workloadspread.book import (
    awaiting,
    by_ordinal,
    chosen,
    matched_of,
    opened,
    scaled,
    stored,
    version_of,
    with_places,
    with_pod,
    without_pod,
)
from flotilla_common.api.kinds.workloadspread.types import MATCHED, Matched, Subset, SubsetStatus
from tests.testkit.documents import Json, decoded

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def subsets(*rows: Json) -> list[Subset]:
    return decoded(list(rows), list[Subset])


def entry(name: str, missing: int, *, closed: bool = False, **pods: list[str]) -> SubsetStatus:
    conditions = [{"type": "Schedulable", "status": "False"}] if closed else []
    maps = {f"{verb}Pods": dict.fromkeys(names, "2026-11-26T12:00:00Z") for verb, names in pods.items()}
    document = {"name": name, "missingReplicas": missing, "conditions": conditions, **maps}
    return decoded(document, SubsetStatus)


def filled(rows: list[Json], count: int, replicas: int = 10) -> list[str]:
    """Return the subsets of `count` pods that come one after the other; empty: none."""
    book, found = opened(subsets(*rows), replicas, []), list[str]()
    for number in range(count):
        place = chosen(book)
        found.append(place.name if place else "")
        if place is not None and place.missing_replicas > 0:
            book = with_pod(book, place.name, f"p{number}", NOW)
    return found


@pytest.mark.parametrize(
    ("rows", "count", "replicas", "expected"),
    [
        pytest.param([{"name": "a", "maxReplicas": 3}, {"name": "b"}], 5, 5, "aaabb", id="W1"),
        pytest.param([{"name": "a", "maxReplicas": 2}, {"name": "b", "maxReplicas": 2}], 6, 6, "aabb__", id="W2"),
        pytest.param(
            [{"name": "a", "maxReplicas": "33%"}, {"name": "b", "maxReplicas": "33%"}, {"name": "c"}],
            10,
            10,
            "aaaabbbbcc",
            id="W14",
        ),
        pytest.param(
            [{"name": "a", "maxReplicas": "50%"}, {"name": "b", "maxReplicas": "50%"}], 7, 7, "aaaabbb", id="W15"
        ),
        pytest.param([{"name": "a", "maxReplicas": 0}, {"name": "b"}], 2, 2, "bb", id="V10"),
    ],
)
def test_pods_fill_the_subsets_in_order(rows: list[Json], count: int, replicas: int, expected: str) -> None:
    assert "".join(name or "_" for name in filled(rows, count, replicas)) == expected


def test_a_place_that_is_given_back_is_taken_again() -> None:
    """W3."""
    book = [entry("a", 0), entry("b", -1)]
    freed = without_pod(book, "a", "p1", NOW)
    assert freed is not None
    assert (freed[0].missing_replicas, freed[0].deleting_pods) == (1, {"p1": NOW})
    place = chosen(freed)
    assert place is not None
    assert place.name == "a"


@pytest.mark.parametrize(
    ("book", "subset"),
    [
        pytest.param([entry("a", 0), entry("b", -1)], "b", id="W5: it takes any number"),
        pytest.param([entry("a", 0)], "gone", id="it is not in the book"),
        pytest.param([entry("a", 0, creating=["p1"])], "a", id="its creation is written down"),
        pytest.param([entry("a", 0), entry("b", 1, deleting=["p1"])], "a", id="its deletion is written down"),
    ],
)
def test_nothing_is_to_be_written_down(book: list[SubsetStatus], subset: str) -> None:
    assert without_pod(book, subset, "p1", NOW) is None


def test_a_pod_that_asks_again_keeps_its_place() -> None:
    """W11."""
    book = [entry("a", 1), entry("b", 1, creating=["p"])]
    place = awaiting(book, "p")
    assert place is not None
    assert place.name == "b"
    assert (awaiting(book, "q"), awaiting(book, "")) == (None, None)


def test_a_subset_that_finds_no_nodes_is_passed_over() -> None:
    place = chosen([entry("a", 3, closed=True), entry("b", -1)])
    assert place is not None
    assert place.name == "b"


def test_a_new_book_knows_which_subsets_find_no_nodes() -> None:
    """Pitfall 10."""
    rows = subsets({"name": "a", "maxReplicas": 3}, {"name": "b"})
    book = opened(rows, 5, [entry("a", 0, closed=True), entry("b", -1)])
    assert [(one.missing_replicas, one.schedulable) for one in book] == [(3, False), (-1, True)]


THREE = subsets({"name": "a", "maxReplicas": 3}, {"name": "b", "maxReplicas": 1}, {"name": "c"})


def test_numbered_pods_go_by_their_ordinals() -> None:
    """W13 and K10."""
    assert "".join(by_ordinal(THREE, [], ordinal) for ordinal in range(6)) == "aaabcc"
    closed = [entry("a", 0, closed=True)]
    assert "".join(by_ordinal(THREE, closed, ordinal) for ordinal in range(4)) == "bccc"
    assert by_ordinal(THREE[:2], [], 9) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name":"ws","subset":"a"}', Matched(name="ws", subset="a")),
        ('{"Name":"ws","Subset":"a","UID":"u"}', Matched(name="ws", subset="a", uid="u")),
        ("", None),
        ("[]", None),
        ('{"name":1}', None),
        ("{", None),
    ],
)
def test_the_mark_of_a_pod(text: str, expected: Matched | None) -> None:
    assert matched_of({MATCHED: text}) == expected


@pytest.mark.parametrize(
    ("labels", "tracked", "expected"),
    [
        ({"pod-template-hash": "abc", "controller-revision-hash": "x-def"}, True, "abc"),
        ({"controller-revision-hash": "web-def"}, True, "def"),
        ({}, True, "versionIgnored"),
        ({"pod-template-hash": "abc"}, False, "versionIgnored"),
    ],
)
def test_the_version_of_a_pod(labels: dict[str, str], tracked: bool, expected: str) -> None:
    assert version_of(labels, tracked=tracked) == expected


def test_limits_are_rounded_up() -> None:
    assert [scaled(value, 7) for value in (3, "50%", "0%", "100%", "14%")] == [3, 4, 0, 7, 1]
    assert scaled(1 << 40, 7) == (1 << 31) - 1  # what the status can hold
    assert scaled("50%", -2) == 0  # -1 would be no limit
    for text in ("50", "1.5%", "%", "-1%"):
        with pytest.raises(ValueError, match="nor a percentage"):
            scaled(text, 7)


def test_what_is_stored_says_what_the_schema_requires():
    assert stored(entry("a", 2, closed=True)) == {
        "name": "a",
        "replicas": 0,
        "missingReplicas": 2,
        "conditions": [{"type": "Schedulable", "status": "False", "message": ""}],
    }
    assert stored(entry("b", 0, creating=["p"])).keys() == {"name", "replicas", "missingReplicas", "creatingPods"}


def test_a_place_that_was_taken_ahead_goes_to_a_pod_that_comes_again_under_its_name() -> None:
    """The former pod does not count as being deleted any more."""
    held = entry("a", 1, creating=["ahead/r/t"], deleting=["p", "q"])
    found = with_places(held, taken=[], given={"ahead/r/t": "p"}, returned=[], now=NOW)
    assert (list(found.creating_pods), list(found.deleting_pods), found.missing_replicas) == (["p"], ["q"], 1)
