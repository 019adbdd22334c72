"""The worked examples of ResourceDistributions (resourcedistribution.md §8), played on plain tables.

Those of admission are in tests/unit/webhook/test_resourcedistribution.py, 26 (garbage collection) is in
tests/integration.
"""

from typing import Any

import pytest

from flotilla_common.api.keys import DISTRIBUTED_HASH
from flotilla_common.api.kinds.resourcedistribution.types import GET_FAILED
from flotilla_common.api.resources import SECRET
from flotilla_common.mirror.feed import Followed
from tests.testkit.documents import Json
from tests.unit.resourcedistribution.world import ALL, World, group, names, secret


def distributed(*namespaces: str, **targets: Any) -> World:
    """Return a settled world with copies in these namespaces."""
    world = World()
    world.distribute(**(targets or {"includedNamespaces": names(*namespaces)}))
    assert world.run() == (["Distributed"] if namespaces else ["NoTargets"])
    assert world.copies() == sorted(namespaces)
    assert world.counts == (len(namespaces), len(namespaces), 0)
    assert (world.statuses, world.trouble) == (1, {})
    assert sorted(world.tried) == [("create", namespace) for namespace in sorted(namespaces)]
    world.tried.clear()
    return world


CHOICES = [
    pytest.param({"includedNamespaces": names("a"), "namespaceSelector": group("two")}, ("a", "c"), id="1"),
    pytest.param(
        {
            "includedNamespaces": names("a", "b", "c"),
            "namespaceSelector": group("one"),
            "excludedNamespaces": names("b"),
        },
        ("a", "c"),
        id="2",
    ),
    pytest.param({"allNamespaces": True, "excludedNamespaces": names("d")}, ("a", "b", "c"), id="3"),
    pytest.param({"includedNamespaces": names("kube-system", "a")}, ("a",), id="4"),
    pytest.param({"excludedNamespaces": {}, "namespaceSelector": {}}, (), id="8"),
    pytest.param(
        {"allNamespaces": True, "includedNamespaces": names("x"), "namespaceSelector": group("one")},
        ALL,
        id="all is all that exist",
    ),
]


@pytest.mark.parametrize(("targets", "namespaces"), CHOICES)
def test_examples_1_to_4_and_8_the_choice_of_namespaces(targets: Json, namespaces: tuple[str, ...]) -> None:
    distributed(*namespaces, **targets)


def test_examples_5_and_6_a_namespace_that_comes_later() -> None:
    world = World()
    world.distribute(includedNamespaces=names("a", "x"))
    assert world.run() == ["NamespaceMissing", "Distributed"]
    assert (world.copies(), world.counts, world.trouble) == (["a"], (2, 1, 1), {5: ["x"]})
    assert world.tried == [("create", "a")]
    assert world.plan().stages == ()
    assert world.plan().wake_at is None
    world.add_namespace("x")
    assert world.context.woken[-1] == ("", "r")
    assert world.run() == ["Distributed"]
    assert (world.copies(), world.counts, world.trouble) == (["a", "x"], (2, 2, 0), {})


@pytest.mark.parametrize("gone", [True, False])
def test_example_7_a_namespace_goes(gone: bool) -> None:
    world = distributed("a", "b")
    if gone:
        world.remove_namespace("a")
    else:
        world.add_namespace("a", terminating=True)
    assert world.run() == ["NamespaceMissing", "Distributed"]
    assert (world.counts, world.trouble, world.tried) == ((2, 1, 1), {5: ["a"]}, [])


def test_a_namespace_that_was_matched_by_its_label_is_forgotten_when_it_is_gone() -> None:
    world = distributed("a", "b", namespaceSelector=group("one"))
    world.add_namespace("a", terminating=True, group="one")
    world.run()
    assert world.trouble == {5: ["a"]}
    world.remove_namespace("a")
    assert world.run() == ["Distributed"]
    assert (world.counts, world.trouble) == ((1, 1, 0), {})


def test_examples_9_and_10_a_label_comes_and_goes() -> None:
    world = distributed("a", "b", namespaceSelector=group("one"))
    world.add_namespace("d", group="one")
    world.run()
    assert (world.copies(), world.tried) == (["a", "b", "d"], [("create", "d")])
    world.add_namespace("d")
    assert world.once()[0] == "Removing"
    assert world.run() == ["Distributed"]
    assert (world.copies(), world.tried) == (["a", "b"], [("create", "d"), ("delete", "d")])
    assert world.counts == (2, 2, 0)


def test_example_11_fewer_targets() -> None:
    world = distributed("a", "b", "c")
    world.distribute(includedNamespaces=names("b"))
    world.run()
    assert (world.copies(), world.tried) == (["b"], [("delete", "a"), ("delete", "c")])
    assert (world.counts, world.status.observed_generation) == ((1, 1, 0), 2)


@pytest.mark.parametrize("equal", [True, False])
def test_example_12_somebody_elses_object_is_left_alone(equal: bool) -> None:
    """It stays even if it is equal, and names this distribution as its source."""
    world = World()
    marks = {"annotations": {"kruise.io/resourcedistribution.resource.from": "r"}}
    world.store("a", secret(data={"k": "djE=" if equal else "eA=="}), **marks)
    world.distribute(includedNamespaces=names("a", "b"))
    assert world.run() == ["Conflict", "Distributed"]
    assert (world.copies(), world.counts, world.trouble) == (["b"], (2, 1, 1), {4: ["a"]})
    assert world.status.conditions[4].reason.startswith("Secret a/s already exists")
    assert world.tried == [("create", "b")]
    assert world.plan().errors == ()
    world.remove_copy("a")
    world.run()
    assert (world.copies(), world.trouble) == (["a", "b"], {})


def test_example_13_a_value_is_reverted() -> None:
    world = distributed("a", "b")
    world.edit_copy("a", {"data": {"k": "eA==", "more": "eQ=="}})
    assert world.context.woken[-1] == ("", "r")
    assert world.once() == ["Updating", "Distributed"]
    assert world.run() == ["Distributed"]
    assert world.copy("a")["data"] == {"k": "djE="}
    assert (world.tried, world.statuses) == ([("patch", "a")], 1)


def test_example_14_what_others_add_to_its_metadata_stays() -> None:
    world = distributed("a")
    world.edit_copy(
        "a", {"metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "y"}, "finalizers": ["mine/z"]}}
    )
    world.run()
    assert world.tried == []
    world.distribute(
        secret(data={"k": "djI="}, metadata={"name": "s", "labels": {"new": "l"}, "finalizers": ["source/f"]}),
        includedNamespaces=names("a"),
    )
    world.run()
    meta = world.copy("a")["metadata"]
    assert (meta["labels"], meta["annotations"]["mine"]) == ({"mine": "x", "new": "l"}, "y")
    assert meta["finalizers"] == ["mine/z", "source/f"]
    assert world.tried == [("patch", "a")]


def test_example_15_a_copy_that_is_deleted_is_made_again() -> None:
    world = distributed("a", "b")
    world.remove_copy("a")
    assert world.context.woken[-1] == ("", "r")
    assert world.run() == ["Distributed"]
    assert (world.copies(), world.tried, world.statuses) == (["a", "b"], [("create", "a")], 1)


def test_example_16_a_copy_that_lost_its_owner_is_nobodys() -> None:
    world = distributed("a")
    world.edit_copy("a", {"metadata": {"ownerReferences": []}, "data": {"k": "eA=="}})
    assert world.run() == ["Conflict"]
    assert (world.counts, world.trouble, world.tried) == ((1, 0, 1), {4: ["a"]}, [])


def test_example_17_other_data_reaches_all_copies() -> None:
    world = distributed("a", "b")
    before = world.copy("a")["metadata"]["annotations"]
    world.distribute(secret(data={"n": "bmV3"}), includedNamespaces=names("a", "b"))
    world.run()
    assert world.tried == [("patch", "a"), ("patch", "b")]
    for namespace in ("a", "b"):
        held = world.copy(namespace)
        assert held["data"] == {"n": "bmV3"}
        assert held["metadata"]["annotations"][DISTRIBUTED_HASH] != before[DISTRIBUTED_HASH]


def test_example_18_another_label_is_for_new_copies_only() -> None:
    world = distributed("a")
    labelled = secret(data={"k": "djE="}, metadata={"name": "s", "labels": {"new": "l"}})
    world.distribute(labelled, includedNamespaces=names("a", "b"))
    world.run()
    assert world.tried == [("create", "b")]
    assert "labels" not in world.copy("a")["metadata"]
    assert world.copy("b")["metadata"]["labels"] == {"new": "l"}


def test_example_25_one_namespace_refuses() -> None:
    world = World()
    world.refusals["create", "b"] = "exceeded quota"
    world.distribute(includedNamespaces=names("a", "b", "c"))
    assert world.run() == ["CreateFailed", "Distributed"]
    assert (world.copies(), world.counts, world.trouble) == (["a", "c"], (3, 2, 1), {1: ["b"]})
    assert world.status.conditions[1].reason == "exceeded quota"
    world.tried.clear()
    world.once()
    assert world.tried == [("create", "b")]
    written = world.statuses
    world.refusals.clear()
    assert world.run() == ["Distributed"]
    assert (world.counts, world.trouble, world.statuses) == ((3, 3, 0), {}, written + 1)


def test_example_29_the_second_of_two() -> None:
    world = distributed("a")
    world.distribute(meta={"uid": "other"}, includedNamespaces=names("a"))
    assert world.run() == ["Conflict"]
    assert (world.trouble, world.tried) == ({4: ["a"]}, [])


def test_an_immutable_copy_cannot_be_updated() -> None:
    world = World()
    world.distribute(secret(data={"k": "djE="}, immutable=True), includedNamespaces=names("a"))
    world.run()
    world.distribute(secret(data={"k": "djI="}, immutable=True), includedNamespaces=names("a"))
    world.refusals["patch", "a"] = "field is immutable when `immutable` is set"
    assert world.run() == ["UpdateFailed"]
    assert (world.counts, world.trouble) == ((1, 0, 1), {2: ["a"]})


LOGIN = secret(data={"username": "YQ==", "password": "Yg=="})
BASIC = LOGIN | {"type": "kubernetes.io/basic-auth", "data": {"username": "YQ==", "password": "Yw=="}}


def retyped(*there: str) -> World:
    """Return a world in which a Secret was distributed, and has another type now."""
    world = World()
    world.distribute(LOGIN, includedNamespaces=names(*there))
    world.run()
    world.tried.clear()
    world.distribute(BASIC, includedNamespaces=names(*there))
    return world


def test_another_type_makes_the_copies_anew() -> None:
    world = retyped("a", "b")
    assert world.once() == ["Updating"]
    assert world.run() == ["Distributed"]
    assert world.tried == [("delete", "a"), ("create", "a"), ("delete", "b"), ("create", "b")]
    copy = world.copy("a")
    assert (copy["type"], copy["data"], world.copies()) == (BASIC["type"], BASIC["data"], ["a", "b"])
    assert (world.counts, world.trouble) == ((2, 2, 0), {})


def test_another_type_of_an_immutable_secret_makes_it_anew_too() -> None:
    world = World()
    world.distribute(LOGIN | {"immutable": True}, includedNamespaces=names("a"))
    world.run()
    world.distribute(BASIC | {"immutable": True}, includedNamespaces=names("a"))
    assert world.run() == ["Distributed"]
    assert world.copy("a")["type"] == BASIC["type"]


def test_a_held_copy_of_another_type_is_made_anew_when_it_is_gone() -> None:
    world = retyped("a")
    world.edit_copy("a", {"metadata": {"finalizers": ["slow/x"]}})
    world.once()
    assert world.run() == ["Replacing"]
    assert (world.tried, world.counts, world.trouble) == ([("delete", "a")], (1, 0, 1), {})
    world.remove_copy("a")
    assert world.run() == ["Distributed"]
    assert world.tried == [("delete", "a"), ("create", "a")]


def test_somebody_elses_secret_of_another_type_is_left_alone() -> None:
    world = World()
    world.store("a", LOGIN)
    world.distribute(BASIC, includedNamespaces=names("a"))
    assert (world.run(), world.tried) == (["Conflict"], [])


@pytest.mark.parametrize(
    ("verb", "condition", "code"),
    [pytest.param("delete", 2, "UpdateFailed", id="delete"), pytest.param("create", 1, "CreateFailed", id="create")],
)
def test_a_copy_that_cannot_be_made_anew(verb: str, condition: int, code: str) -> None:
    world = retyped("a")
    world.refusals[verb, "a"] = "not you"
    assert world.run() == [code]
    assert world.trouble == {condition: ["a"]}
    world.refusals.clear()
    assert world.run() == ["Distributed"]


def test_a_copy_that_cannot_be_deleted_is_told_and_counts_for_nothing() -> None:
    world = distributed("a", "b")
    world.refusals["delete", "a"] = "not you"
    world.distribute(includedNamespaces=names("b"))
    assert world.run() == ["DeleteFailed", "Distributed"]
    assert (world.counts, world.trouble) == ((1, 1, 0), {3: ["a"]})


def test_a_copy_on_its_way_out_is_not_deleted_again() -> None:
    world = distributed("a", "b")
    world.distribute(includedNamespaces=names("b"))
    world.edit_copy("a", {"metadata": {"deletionTimestamp": "2026-03-01T12:00:00Z", "finalizers": ["slow/x"]}})
    assert world.run() == ["Distributed"]
    assert world.tried == []


def test_a_namespace_that_goes_is_not_cleaned() -> None:
    world = distributed("a", "b")
    world.add_namespace("a", terminating=True)
    world.distribute(includedNamespaces=names("b"))
    world.run()
    assert world.tried == []


def test_nothing_is_done_before_everything_is_known() -> None:
    world = World()
    world.store("a", secret())
    world.distribute(includedNamespaces=names("a", "b"))
    named = world.context.by_name[SECRET]
    named.known = Followed(synced=False)
    assert world.once() == ["ReadingCopies"]
    assert (world.tried, world.statuses) == ([], 0)
    named.known = Followed(synced=True)
    named.changed("s")
    assert world.context.replanned == [("", "r")]
    assert world.run() == ["Conflict", "Distributed"]


def test_what_cannot_be_read_is_told() -> None:
    world = distributed("a", "b")
    world.distribute(includedNamespaces=names("a", "x"))
    world.context.by_name[SECRET].known = Followed(synced=False, trouble="not you")
    assert world.run() == ["CannotRead", "NamespaceMissing"]
    everywhere = ["a", "b", "c", "d", "kube-public", "kube-system"]
    assert (world.counts, world.trouble, world.tried) == ((2, 0, 2), {0: everywhere, 5: ["x"]}, [])
    assert world.status.conditions[0].type == GET_FAILED
    assert world.status.conditions[0].reason == "not you"


@pytest.mark.parametrize(
    ("resource", "targets", "code"),
    [
        pytest.param(secret(kind="Pod"), {}, "InvalidResource", id="a kind that cannot be distributed"),
        pytest.param(secret(metadata={}), {}, "InvalidResource", id="without a name"),
        pytest.param([], {}, "InvalidResource", id="no object"),
        pytest.param(
            secret(),
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "InvalidSelector",
            id="a selector that is none",
        ),
    ],
)
def test_what_was_written_past_admission(resource: Any, targets: Json, code: str) -> None:
    world = World()
    world.distribute(resource, allNamespaces=True, **targets)
    assert world.run() == [code]
    assert (world.tried, world.statuses) == ([], 0)


def test_nothing_is_made_for_one_that_goes() -> None:
    world = distributed("a")
    world.remove_copy("a")
    world.distribute(meta={"deletionTimestamp": "2026-03-01T12:00:00Z"}, includedNamespaces=names("a", "b"))
    assert world.run() == ["Deleting"]
    assert world.tried == []
