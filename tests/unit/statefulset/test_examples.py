"""The worked examples of ordinals, updates and scaling (statefulset.md §8.1 to §8.4), one row per pass."""

import pytest

from tests.testkit.plans import codes
from tests.testkit.tables import cases
from tests.unit.statefulset.build import Builder, planned, pods, sts, summary

START = "StatefulSetStartOrdinal=true"


def reserve(*items: object) -> dict[str, list[object]]:
    return {"reserveOrdinals": list(items)}


ORDINALS: list[tuple[str, Builder, str, str, list[str]]] = [
    ("1", sts(4, "A").set(**reserve(1)), "", "", ["create 0A", "create 2A", "create 3A"]),
    ("1-next", sts(4, "A").set(**reserve(1)), "0A 2A 3A", "", ["create 4A"]),
    ("2-parallel", sts(4, "A").set(**reserve(1, 3)), "0A 2A 3A 4A", "", ["create 5A", "delete 3"]),
    ("2-ordered", sts(4, "A").set(**reserve(1, 3)).ordered(), "0A 2A 3A 4A", "", ["create 5A"]),
    ("2-ordered-waits", sts(4, "A").set(**reserve(1, 3)).ordered(), "0A 2A 3A 4A 5A!", "", []),
    ("2-ordered-then", sts(4, "A").set(**reserve(1, 3)).ordered(), "0A 2A 3A 4A 5A", "", ["delete 3"]),
    ("3", sts(3, "A").set(**reserve(1, 3)), "0A 2A 3A 4A", "", ["delete 3"]),
    ("4", sts(1, "A").set(**reserve(0, "2-5")), "1A 6A 7A", "", ["delete 7", "delete 6"]),
    ("4-up", sts(3, "A").set(**reserve(0, "2-5")), "1A", "", ["create 6A", "create 7A"]),
    ("5", sts(4, "A").set(**reserve(1, 3), ordinals={"start": 2}), "2A 4A", START, ["create 5A", "create 6A"]),
    ("6", sts(3, "A").set(ordinals={"start": 2}).ordered(), "0A 1A", START, ["create 2A"]),
    ("6-wait", sts(3, "A").set(ordinals={"start": 2}).ordered(), "0A 1A 2A!", START, []),
    ("6-down", sts(3, "A").set(ordinals={"start": 2}).ordered(), "0A 1A 2A 3A 4A", START, ["delete 1"]),
    ("6-gone", sts(3, "A").set(ordinals={"start": 2}).ordered(), "0A 1AT 2A 3A 4A", START, []),
    ("6-last", sts(3, "A").set(ordinals={"start": 2}).ordered(), "0A 2A 3A 4A", START, ["delete 0"]),
    ("7", sts(2, "A").set(ordinals={"start": 5}), "0A", "", ["create 1A"]),
    ("8", sts(3).p(2), "0A 1A 2A", "", ["delete 2"]),
    ("9", sts(3).p(2), "1A", "", ["create 0A", "create 2B"]),
    ("10", sts(3).p(1), "0A 1A 2B", "", ["delete 1"]),
    ("11", sts(3).p(5), "0A 1A 2A", "", []),
    ("11-up", sts(6).p(5), "0A 1A 2A", "", ["create 3A", "create 4A", "create 5B"]),
    ("12", sts(3).p(2).set(**reserve(1, 3)), "0A 2A 4A", "", ["delete 4"]),
    ("12-back", sts(3).p(2).set(**reserve(1, 3)), "0A 4B", "", ["create 2A"]),
    ("13", sts(3).p(1).set(**reserve(0)), "0A 1B 2B", "", ["create 3B", "delete 0"]),
    ("14", sts(3).p(3), "0A 1A 2B", "", []),
    ("14-back", sts(3).p(3), "0A 1A", "", ["create 2A"]),
    ("16", sts(3).p(1).unordered(), "0A 2B", "", ["create 1B"]),
    ("17", sts(3).p(2).unordered(), "0A 1B", "", ["create 2A"]),
]

UPDATES: list[tuple[str, Builder, str, list[str], set[str]]] = [
    ("18", sts(5).m(3).p(4), "0A 1A 2A 3A 4A", ["delete 4"], {"Updating"}),
    ("19", sts(5).m(3), "0A 1A 2A 3A 4B", ["delete 3", "delete 2", "delete 1"], {"WaitingForMaxUnavailable"}),
    ("19-wait", sts(5).m(3), "0A 1B! 2B! 3B! 4B", [], {"WaitingForMaxUnavailable"}),
    ("19-then", sts(5).m(3), "0A 1B! 2B! 3B 4B", ["delete 0"], {"Updating"}),
    ("19a", sts(5).m(3).in_place(), "0A 1A 2A 3A 4A", ["update 4B", "update 3B", "update 2B"], set()),
    ("19a-then", sts(5).m(3).in_place(), "0A 1A 2B! 3B! 4B", ["update 1B"], set()),
    ("20", sts(5).m("30%"), "0A 1A 2A 3A 4A", ["delete 4"], set()),
    ("20-50", sts(5).m("50%"), "0A 1A 2A 3A 4A", ["delete 4", "delete 3"], set()),
    ("20-10", sts(3).m("10%"), "0A 1A 2A", ["delete 2"], set()),
    ("21", sts(6).m(2), "0A 1A! 2A 3A 4A 5A", ["delete 5", "delete 1"], {"WaitingForMaxUnavailable"}),
    ("22", sts(5).m(2), "0A! 1A! 2A 3A 4A", ["delete 1", "delete 0"], {"WaitingForMaxUnavailable"}),
    ("23", sts(5).m("100%"), "0A! 1A! 2A 3A 4A", [f"delete {n}" for n in (4, 3, 2, 1, 0)], set()),
    ("24", sts(3, "C"), "0A 1A 2B!", ["delete 2"], {"WaitingForMaxUnavailable"}),
    ("25", sts(3).ordered(), "0A 1A! 2A", ["delete 1"], {"Updating"}),
    ("25-then", sts(3).ordered(), "0A 1A 2A", ["delete 2"], set()),
    ("25-next", sts(3).ordered(), "0A 1A 2B!", [], {"WaitingForPod"}),
    ("27", sts(3).rolling(minReadySeconds=10), "0A 1A 2B@4", [], {"WaitingForMaxUnavailable"}),
    ("27-then", sts(3).rolling(minReadySeconds=10), "0A 1A 2B@10", ["delete 1"], set()),
    ("28", sts(3, "A").p(1).m(2), "0A 1B 2B", ["delete 2", "delete 1"], set()),
    ("29", sts(3, "C").m(3), "0A 1A 2B", ["delete 2", "delete 1", "delete 0"], set()),
    ("30", sts(3).on_delete(), "0A 1A 2A", [], {"OnDelete"}),
    ("30-back", sts(3).on_delete(), "0A 2A", ["create 1B"], {"OnDelete"}),
    ("31", sts(5).rolling(paused=True), "0A 1A 2A*", ["create 3B", "create 4B"], {"PausedByUser"}),
    ("31-specified", sts(3).rolling(paused=True), "0A 1A 2A*", [], {"PausedByUser"}),
    ("33", sts(10).p(6).m(2).unordered(), "0A 1A 2A 3A 4A 5A 6B 7B 8A 9A", ["delete 9", "delete 8"], set()),
    ("33-done", sts(10).p(6).m(2).unordered(), "0A 1A 2A 3A 4A 5A 6B 7B 8B 9B", [], {"PartitionReached"}),
    (
        "given-back",
        sts(5).m(2).in_place(),
        "0A 1AG 2AG 3A 4A",
        ["update 2B", "update 1B"],
        {"WaitingForMaxUnavailable"},
    ),
    ("given-back-first", sts(5).m(2).in_place(), "0A 1A 2A 3AG 4AG", ["update 4B", "update 3B"], set()),
    ("36", sts(1).in_place(), "0C", ["delete 0"], set()),
    ("56", sts(6).m(3).p(3).in_place(), "0A* 1A 2A 3A 4A 5A", ["delete 0", "update 5B", "update 4B"], set()),
    ("57", sts(6, "A").m(3), "0A* 1A* 2A* 3A 4A 5A*", ["delete 5", "delete 2", "delete 1"], set()),
    ("58", sts(5, "A").m(3), "0A 1A!* 2A!* 3A* 4A*", ["delete 4", "delete 2", "delete 1"], set()),
    ("specified-terminating", sts(3, "A"), "0A 1A*T 2A*", [], {"WaitingForMaxUnavailable"}),
]

SCALING: list[tuple[str, Builder, str, list[str]]] = [
    ("38", sts(3, "A").ordered(), "", ["create 0A"]),
    ("38-wait", sts(3, "A").ordered(), "0A!", []),
    ("38-next", sts(3, "A").ordered(), "0A", ["create 1A"]),
    ("38-min-ready", sts(3, "A").ordered().rolling(minReadySeconds=10), "0A@3", []),
    ("39", sts(5, "A"), "0A 1A", ["create 2A", "create 3A", "create 4A"]),
    (
        "40",
        sts(40, "A").set(scaleStrategy={"maxUnavailable": "10%"}),
        "0A! 1A 2A 3A 4A",
        [f"create {n}A" for n in (5, 6, 7)],
    ),
    ("41", sts(5, "A").set(scaleStrategy={"maxUnavailable": 2}), "0AP 1A", ["create 2A"]),
    (
        "42",
        sts(5).m(3).set(scaleStrategy={"maxUnavailable": 1}),
        "0A! 1A 2A 3A 4A",
        ["delete 4", "delete 3", "delete 0"],
    ),
    ("43", sts(0, "A").ordered(), "0A! 1A! 2A!", ["delete 2"]),
    ("43-two-unready", sts(0, "A").ordered(), "0A 1A! 2A!", ["delete 2"]),
    ("43-the-next-unready", sts(0, "A").ordered(), "0A 1A!", ["delete 1"]),
    ("43-ready-above-unready", sts(1, "A").ordered(), "0A 1A! 2A", ["delete 2"]),
    ("43-a-wanted-one-is-waited-for", sts(1, "A").ordered(), "0A! 1A!", []),
    ("43-min-ready", sts(1, "A").ordered().rolling(minReadySeconds=300), "0A 1A@3", ["delete 1"]),
    ("43-min-ready-above-unready", sts(0, "A").ordered().rolling(minReadySeconds=300), "0A! 1A! 2A@3", ["delete 2"]),
    ("43-then", sts(0, "A").ordered(), "0A 1A 2A", ["delete 2"]),
    ("43-gone", sts(0, "A").ordered(), "0A 1A 2AT", []),
    ("44", sts(2, "A").ordered(), "0A 1A 2A!", ["delete 2"]),
    ("44-failed-ones-never-recover", sts(1, "A").ordered(), "0A 1AF 2A 3AF", ["delete 3"]),
    ("45", sts(1, "A"), "0A 1A! 2A 3A! 4A", ["delete 4", "delete 3", "delete 2", "delete 1"]),
    ("46", sts(3, "A").ordered(), "0A!", []),
    ("47", sts(3, "A").ordered(), "0A 1AF 2A", ["delete 1"]),
    ("47-gone", sts(3, "A").ordered(), "0A 2A", ["create 1A"]),
    ("48", sts(3, "A"), "0A 1AS 2A", ["delete 1"]),
    ("48-on-delete", sts(3, "A").on_delete(), "0A 1AS 2A", ["delete 1"]),
    ("49", sts(4, "A"), "0A 1AT 2A", ["create 3A"]),
    ("49-update", sts(4).m(2), "0A 1AT 2A 3A", ["delete 3"]),
    ("failed-takes-the-last-unit", sts(3, "A").set(scaleStrategy={"maxUnavailable": 1}), "0AF 1A", ["delete 0"]),
    ("terminating-is-charged-once", sts(4, "A").set(scaleStrategy={"maxUnavailable": 2}), "0A!T 1A", ["create 2A"]),
    ("nothing-to-do", sts(3, "A"), "0A 1A 2A", []),
]

WAITS = "WaitingForMaxUnavailable"
BROKEN: list[tuple[str, Builder, str, list[str], set[str]]] = [
    ("rolled-back", sts(2, "A").ordered(), "0A 1B!", ["delete 1"], {"Updating"}),
    ("rolled-back-in-place", sts(2, "A").ordered().in_place(), "0A 1B!", ["update 1A"], {"Updating"}),
    ("never-started", sts(2, "A").ordered(), "0A 1BP", ["delete 1"], set()),
    ("on-its-way-out", sts(2, "A").ordered(), "0A 1B!T", [], {"WaitingForPod"}),
    ("the-lowest-first", sts(3, "C").ordered(), "0A 1B! 2B!", ["delete 1"], set()),
    ("before-others-are-made", sts(3, "C").ordered(), "0B!", ["delete 0"], set()),
    ("new-ones-fail", sts(3).ordered(), "0A! 1A 2B!", [], {"WaitingForPod"}),
    ("new-ones-fail-at-once", sts(5), "0A! 1A 2A 3A 4B!", [], {WAITS}),
    ("new-ones-work", sts(5, "A"), "0A! 1B! 2A 3A 4B", ["delete 1"], {WAITS}),
    ("kept-by-the-partition", sts(3).p(2).ordered(), "0A! 1A 2A", [], {"WaitingForPod"}),
    ("partition-raised", sts(4).p(3).ordered(), "0A 1A 2B!", ["create 3B"], set()),
    ("partition-raised-and-rolled-back", sts(3, "A").p(3).ordered(), "0A 1A 2B!", ["delete 2"], set()),
    ("partition-of-any", sts(4, "A").p(2).unordered(), "0A 1A 2A 3B!", ["delete 3"], set()),
    ("any-are-broken-ones-first", sts(5).p(3).unordered(), "0A! 1A! 2A 3A 4A", ["delete 1", "delete 0"], set()),
    ("in-place-only-and-partition", sts(3, "A").p(3).in_place(only=True), "0A 1A 2B!", [], set()),
    ("on-delete", sts(3).ordered().on_delete(), "0A! 2A", ["create 1B"], {"OnDelete"}),
    ("on-delete-scaled-in", sts(1).ordered().on_delete(), "0A! 1A", ["delete 1"], {"OnDelete"}),
    ("on-delete-of-the-new-revision", sts(3).ordered().on_delete(), "0B! 2A", [], {"WaitingForPod"}),
    ("paused", sts(3).ordered().rolling(paused=True), "0A! 1A", [], {"PausedByUser", "WaitingForPod"}),
]
"""A broken pod of another revision than the wanted one does not block the others."""

SOON: list[tuple[str, Builder, str, list[str]]] = [
    ("one-of-all", sts(5).rolling(minReadySeconds=300), "0A@9 1A@9 2A@9 3A@9 4A@9", ["delete 4"]),
    ("two-of-all", sts(5).m(2).rolling(minReadySeconds=300), "0A@9 1A@9 2A@9 3A@9 4A@9", ["delete 4", "delete 3"]),
    ("it-is-missing", sts(5).rolling(minReadySeconds=300), "0A@9 1A@9 2A@9 3A@9", ["create 4B"]),
    ("it-is-new", sts(5).rolling(minReadySeconds=300), "0A@9 1A@9 2A@9 3A@9 4B@2", []),
    ("others-are-available", sts(5).rolling(minReadySeconds=300), "0A 1A 2A 3A 4B@299", []),
    ("overtaken", sts(3, "C").rolling(minReadySeconds=10), "0A 1A 2B@4", ["delete 2"]),
    ("a-broken-one-beside", sts(5).rolling(minReadySeconds=300), "0A@9 1A! 2A@9 3A@9 4A@9", ["delete 1"]),
    ("chosen", sts(5, "A").rolling(minReadySeconds=300), "0A*@9 1A*@9 2A@9 3A@9 4A@9", ["delete 1"]),
    ("in-place", sts(5).in_place().rolling(minReadySeconds=300), "0A@9 1A@9 2A@9 3A@9 4A@9", ["update 4B"]),
]
"""Pods that serve, but not for minReadySeconds, are not all taken down at once."""


@pytest.mark.parametrize(("builder", "there", "writes", "reasons"), cases(BROKEN))
def test_broken_pods_of_other_revisions(builder: Builder, there: str, writes: list[str], reasons: set[str]) -> None:
    result = planned(builder, there)
    assert summary(result) == writes
    assert reasons <= codes(result)


@pytest.mark.parametrize(("builder", "there", "writes"), cases(SOON))
def test_pods_within_min_ready_seconds(builder: Builder, there: str, writes: list[str]) -> None:
    assert summary(planned(builder, there)) == writes


def test_a_pod_that_is_recalled_under_a_hook_is_deleted_when_it_lets_go() -> None:
    builder = sts(3, "A").p(3).hook("preDelete")
    asked = planned(builder, pods("0A 1A 2B!", labels={2: {"hold": "preDelete"}}))
    assert summary(asked) == ["PreparingDelete 2"]
    assert summary(planned(builder, "0A 1A 2B!:PreparingDelete")) == ["delete 2"]


@pytest.mark.parametrize(
    ("there", "current"), [("0B 1B", "w-B"), ("0A 1B", "w-A"), ("0B 1B!", "w-A"), ("0B", "w-A"), ("", "w-A")]
)
def test_the_current_revision_follows_pods_that_were_deleted_by_hand(there: str, current: str) -> None:
    result = planned(sts(2).on_delete(), there)
    assert result.status is not None
    assert result.status.body["status"]["currentRevision"] == current


@pytest.mark.parametrize(("builder", "there", "gates", "writes"), cases(ORDINALS))
def test_ordinals_and_partition(builder: Builder, there: str, gates: str, writes: list[str]) -> None:
    assert summary(planned(builder, there, gates=gates)) == writes


@pytest.mark.parametrize(("builder", "there", "writes", "reasons"), cases(UPDATES))
def test_updates(builder: Builder, there: str, writes: list[str], reasons: set[str]) -> None:
    result = planned(builder, there)
    assert summary(result) == writes
    assert reasons <= codes(result)


@pytest.mark.parametrize(("builder", "there", "writes"), cases(SCALING))
def test_scaling(builder: Builder, there: str, writes: list[str]) -> None:
    assert summary(planned(builder, there)) == writes


def test_weights_decide_the_order() -> None:
    """Example 32."""
    weights = [{"weight": 50, "matchSelector": {"matchLabels": {"x": "1"}}}]
    weights += [{"weight": 30, "matchSelector": {"matchLabels": {"y": "1"}}}]
    labels = {0: {"y": "1"}, 1: {"x": "1"}}
    builder = sts(4).m(4).unordered(weightPriority=weights)
    result = planned(builder, pods("0A 1A 2A 3A", labels=labels))
    assert summary(result) == ["delete 1", "delete 0", "delete 3", "delete 2"]


def test_numbers_in_labels_decide_the_order() -> None:
    """Example 34: pods without the key come first."""
    labels = {0: {"k": "a-3"}, 1: {"k": "a-10"}}
    builder = sts(3).m(3).unordered(orderPriority=[{"orderedKey": "k"}])
    assert summary(planned(builder, pods("0A 1A 2A", labels=labels))) == ["delete 2", "delete 1", "delete 0"]


def test_in_place_only_never_deletes() -> None:
    """Example 37: an update that cannot be done in place is an error of each pass."""
    builder = sts(2).in_place(only=True)
    builder.spec["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    result = planned(builder, "0A 1A")
    assert ("update", "find strategy is InPlaceOnly but Pod w-1 can not update in-place") in result.errors
    assert [one for one in summary(result) if one.startswith("delete")] == []
    assert "InPlaceImpossible" in codes(result)
