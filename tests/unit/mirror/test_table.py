"""The table only moves forward, in whatever order its sources deliver."""

from contextlib import nullcontext
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.mirror.table import Table, VersionsWentBack, version_number, version_of


class Thing(Model, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


def thing(name: str, version: int, uid: str = "", **labels: str) -> Thing:
    meta = ObjectMeta(name=name, namespace="ns", uid=uid or f"uid-{name}", resource_version=str(version), labels=labels)
    return Thing(metadata=meta)


def by_app(obj: Thing) -> list[str]:
    return [obj.metadata.labels["app"]] if "app" in obj.metadata.labels else []


def make() -> tuple[Table[Thing], list[tuple[str, str]]]:
    table, heard = Table[Thing]({"app": by_app}), list[tuple[str, str]]()

    def listen(old: Thing | None, new: Thing | None) -> None:
        heard.append((shown(old), shown(new)))

    table.listen(listen)
    return table, heard


def shown(obj: Thing | None) -> str:
    return f"{obj.metadata.uid}@{obj.metadata.resource_version}" if obj else "-"


def test_versions_are_numbers() -> None:
    assert [version_number(text) for text in ("", "0", "9", "10")] == [0, 0, 9, 10]
    assert version_of(thing("a", 12)) == 12
    assert version_of(Thing()) == 0


def names(table: Table[Thing]) -> list[str]:
    return sorted(obj.metadata.name for obj in table)


def test_newer_replaces_older_and_equal_or_older_is_dropped() -> None:
    table, heard = make()
    assert table.apply(thing("a", 5))
    assert not table.apply(thing("a", 5))
    assert not table.apply(thing("a", 4))
    assert table.apply(thing("a", 6))
    assert heard == [("-", "uid-a@5"), ("uid-a@5", "uid-a@6")]


def test_versions_compare_as_numbers() -> None:
    table, _ = make()
    table.apply(thing("a", 9))
    assert table.apply(thing("a", 10))


def test_a_deleted_uid_stays_deleted() -> None:
    table, heard = make()
    table.apply(thing("a", 5))
    assert table.remove("ns", "a", "uid-a")
    assert not table.apply(thing("a", 9))
    assert not table.remove("ns", "a", "uid-a")
    assert heard[-1] == ("uid-a@5", "-")
    assert len(table) == 0


def test_a_delete_that_comes_before_the_object_wins() -> None:
    table, heard = make()
    assert not table.remove("ns", "a", "uid-a")
    assert not table.apply(thing("a", 5))
    assert heard == []


def test_a_namesake_replaces_the_old_object_as_delete_and_add() -> None:
    table, heard = make()
    table.apply(thing("a", 5, "first"))
    assert table.apply(thing("a", 7, "second"))
    assert heard == [("-", "first@5"), ("first@5", "-"), ("-", "second@7")]
    assert table.by_uid("first") is None
    assert not table.apply(thing("a", 6, "first"))


def test_a_late_delete_leaves_the_namesake_alone() -> None:
    table, _ = make()
    table.apply(thing("a", 7, "second"))
    assert not table.remove("ns", "a", "first")
    assert names(table) == ["a"]


def test_a_delete_without_uid_spares_newer_objects() -> None:
    table, _ = make()
    table.apply(thing("a", 7))
    assert not table.remove("ns", "a", version=6)
    assert table.remove("ns", "a", version=7)


def test_indexes_follow_changes_and_keep_places() -> None:
    table, _ = make()
    for name in ("a", "b", "c"):
        table.apply(thing(name, 1, app="x"))
    table.apply(thing("b", 2, app="x"))
    assert [obj.metadata.name for obj in table.by_index("app", "x")] == ["a", "b", "c"]
    table.apply(thing("a", 3, app="y"))
    assert [obj.metadata.name for obj in table.by_index("app", "x")] == ["b", "c"]
    assert [obj.metadata.resource_version for obj in table.by_index("app", "x")] == ["2", "1"]
    table.remove("ns", "b", "uid-b")
    table.apply(thing("c", 4))
    assert list(table.by_index("app", "x")) == []
    assert [obj.metadata.name for obj in table.by_index("app", "y")] == ["a"]


def test_an_index_is_added_before_the_first_object() -> None:
    table = Table[Thing]()
    table.add_index("app", by_app)
    table.add_index("app", by_app)
    table.apply(thing("a", 1, app="x"))
    assert [obj.metadata.name for obj in table.by_index("app", "x")] == ["a"]
    table.add_index("app", by_app)  # has no effect, so it does not come too late
    assert [obj.metadata.name for obj in table.by_index("app", "x")] == ["a"]
    with pytest.raises(RuntimeError, match=r"^index other exists already, or comes after the first object$"):
        table.add_index("other", by_app)
    with pytest.raises(RuntimeError, match=r"^index app exists already, or comes after the first object$"):
        Table[Thing]({"app": by_app}).add_index("app", lambda obj: [])
    with pytest.raises(KeyError):
        table.by_index("other", "x")


def test_a_list_drops_what_it_lacks_unless_newer_or_out_of_scope() -> None:
    table, _ = make()
    for obj in (thing("stays", 3), thing("gone", 4), thing("newer", 20), thing("other", 2, app="z")):
        table.apply(obj)
    table.replace([thing("stays", 3), thing("new", 9)], 10, lambda obj: "app" not in obj.metadata.labels)
    assert names(table) == ["new", "newer", "other", "stays"]


steps = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["MODIFIED", "DELETED"])), max_size=12)


@given(steps, st.randoms(use_true_random=False))
def test_any_order_with_repetitions_ends_at_the_newest(history: list[tuple[str, str]], shuffle: Random) -> None:
    """One history of two objects; a second table gets it shuffled and with everything repeated."""
    events: list[tuple[Thing, str]] = []
    lives = {"a": 0, "b": 0}
    for version, (name, kind) in enumerate(history, start=1):
        events.append((thing(name, version, f"{name}{lives[name]}"), kind))
        lives[name] += kind == "DELETED"
    repeated = events * 2
    shuffle.shuffle(repeated)
    straight, mixed = feed(events), feed(repeated)
    assert shown_all(mixed) == shown_all(straight)


def feed(events: list[tuple[Thing, str]]) -> Table[Thing]:
    table, _ = make()
    for obj, kind in events:
        if kind == "DELETED":
            table.remove("ns", obj.metadata.name, obj.metadata.uid)
        else:
            table.apply(obj)
    return table


def shown_all(table: Table[Thing]) -> list[str]:
    assert {shown(obj) for obj in table} == {shown(table.by_uid(obj.metadata.uid)) for obj in table}
    return sorted(shown(obj) for obj in table)


def test_names_are_those_of_one_namespace_at_each_question() -> None:
    table, _ = make()
    taken, elsewhere = table.names("ns"), table.names("other")
    assert "a" not in taken
    table.apply(thing("a", 1))
    assert "a" in taken
    assert "a" not in elsewhere
    assert 7 not in taken


class Broken(Exception):
    pass


def breaks_for_bad(obj: Thing) -> list[str]:
    if obj.metadata.labels.get("app") == "bad":
        raise Broken
    return by_app(obj)


def test_what_an_indexer_cannot_handle_is_not_taken_in_and_hinders_nobody() -> None:
    table, failed = Table[Thing]({"app": breaks_for_bad}), list[tuple[str, str]]()
    table.on_failure = lambda obj, error: failed.append((obj.metadata.name, type(error).__name__))
    assert table.apply(thing("a", 1, app="good"))
    assert not table.apply(thing("a", 2, app="bad"))
    assert table.apply(thing("b", 3, app="good"))
    assert failed == [("a", "Broken")]
    assert sorted(version_of(obj) for obj in table.by_index("app", "good")) == [1, 3]
    assert table.apply(thing("a", 4, app="other"))
    assert [version_of(obj) for obj in table.by_index("app", "good")] == [3]


def test_the_other_listeners_hear_of_what_one_cannot_handle() -> None:
    table, failed, heard = Table[Thing](), list[str](), list[str]()

    def breaks(old: Thing | None, new: Thing | None) -> None:
        raise Broken

    table.on_failure = lambda obj, error: failed.append(obj.metadata.name)
    table.listen(breaks)
    table.listen(lambda old, new: heard.append(shown(new)))
    assert table.apply(thing("a", 1))
    assert table.remove("ns", "a", "uid-a")
    assert (failed, heard) == (["a", "a"], ["uid-a@1", "-"])


def test_what_is_only_inferred_holds_up_to_a_version() -> None:
    table, heard = make()
    old = thing("a", 5)
    table.apply(old)
    table.presume_absent(old, 8)
    assert not table.was_deleted("uid-a")
    assert not table.apply(thing("a", 7))
    assert table.apply(thing("a", 9))
    assert heard == [("-", "uid-a@5"), ("uid-a@5", "-"), ("-", "uid-a@9")]
    table.remove("ns", "a", "uid-a")
    assert table.was_deleted("uid-a")
    assert not table.apply(thing("a", 10))


def test_the_apiserver_knows_better_than_an_inference() -> None:
    table, heard = make()
    old = thing("a", 5)
    table.apply(old)
    assert not table.is_presumed_absent("uid-a")
    table.presume_absent(old, 8)
    assert (table.inferred, table.is_presumed_absent("uid-a")) == (8, True)
    assert not table.apply(old, as_of=7)
    assert table.apply(old, as_of=8)
    assert heard == [("-", "uid-a@5"), ("uid-a@5", "-"), ("-", "uid-a@5")]
    table.remove("ns", "a", "uid-a")
    assert not table.is_presumed_absent("uid-a")
    assert not table.apply(old, as_of=100)


def test_a_list_that_is_older_than_what_was_known_when_it_was_asked_for() -> None:
    table, _ = make()
    table.apply(thing("a", 7))
    table.remove("ns", "b", "uid-b", 9)
    assert table.newest == 9
    table.replace([thing("a", 7)], 8)  # listed before
    with pytest.raises(VersionsWentBack, match="resourceVersion 9 was seen, and a LIST is at 8"):
        table.replace([thing("a", 7)], 8, known=table.newest)


@pytest.mark.parametrize(("listed", "at", "went_back"), [(5, 10, True), (7, 10, False), (8, 10, False), (5, 6, False)])
def test_a_list_that_contradicts_what_is_known_of_its_past(listed: int, at: int, went_back: bool) -> None:
    """The object was at version 7; a LIST at 10 that has it at 5 is one of a restored etcd."""
    table, _ = make()
    table.apply(thing("a", 7))
    with pytest.raises(VersionsWentBack, match="etcd was restored") if went_back else nullcontext():
        table.replace([thing("a", listed)], at)
