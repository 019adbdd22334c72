"""The classification of pods: each pod in its groups, each number on its side (cloneset.md §4.3)."""

from datetime import timedelta

import msgspec
import pytest

from flotilla_cloneset.cloneset.classification import Classification, Criteria, classify, traits
from flotilla_cloneset.cloneset.numbers import Counts, Side
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.selectors import Selector
from tests.unit.cloneset.build import NOW, pod, pods


def classified(all_pods: list[Pod], *, min_ready: int = 0, listed: tuple[str, ...] = ()) -> Classification:
    question = Criteria(
        uid="uid-sample",
        selector=Selector.compile(LabelSelector(match_labels={"app": "sample"})),
        update_revision="sample-new",
        min_ready_seconds=min_ready,
        pods_to_delete=frozenset(listed),
        now=NOW,
    )
    return classify(all_pods, question)


def names(found: list[Pod]) -> list[str]:
    return [one.metadata.name.removeprefix("sample-") for one in found]


def test_groups_overlap_where_they_mean_different_things() -> None:
    found = classified(pods("1n 1n! 1n* 1n^ 1o 1o!*^ 1o:PreparingUpdate"), listed=("sample-n1",))
    assert names(found.new) == ["n1", "n2", "n3", "n4"]
    assert names(found.old) == ["o1", "o2", "o3"]
    assert sorted(names(found.active)) == ["n1", "n2", "n3", "n4", "o1", "o2", "o3"]
    assert names(found.preparing_update) == ["o3"]
    assert names(found.preparing_delete) == ["n4", "o2"]
    assert names(found.specified) == ["n1", "n3", "o2"]
    assert found.specified_uids == {"uid-n1", "uid-n3", "uid-o2"}
    assert found.planned == {"uid-n1", "uid-n3", "uid-n4", "uid-o2"}
    assert found.unavailable == {"uid-n2", "uid-n4", "uid-o2", "uid-o3"}
    assert found.counts == Counts(replicas=7, ready=5, available=3, updated=4, updated_ready=3, updated_available=2)


def test_pods_that_are_over_or_not_ours() -> None:
    stray, orphan = pod("stray", labels={"app": "other"}), pod("orphan")
    orphan.metadata.owner_references[0] = msgspec.structs.replace(orphan.metadata.owner_references[0], controller=False)
    loose = pod("loose", labels={"app": "other"})
    loose.metadata.owner_references.clear()
    over = [pod("done", phase="Succeeded"), pod("failed", phase="Failed"), pod("going", deleting=True)]
    theirs = pod("theirs")
    theirs.metadata.owner_references[0] = msgspec.structs.replace(theirs.metadata.owner_references[0], uid="other")
    found = classified([*over, stray, orphan, loose, theirs, pod("a"), pod("b", ready=False)])
    assert sorted(names(found.inactive)) == ["done", "failed", "going"]
    assert (names(found.strays), names(found.orphans), names(found.active)) == (["stray"], ["orphan"], ["a", "b"])
    assert found.counts.replicas == 2


def test_each_number_is_on_its_side() -> None:
    found = classified(pods("1n 1n! 1n* 1n^ 2o 1o!* 1o:PreparingUpdate 1o:PreparingUpdate 1n:PreparingUpdate"))
    new = Side(all=5, preparing_delete=1, deleting=1, unavailable=2)
    old = Side(all=5, preparing_delete=0, deleting=1, unavailable=2)
    assert found.sides(False) == (new, old)
    assert found.sides(True) == (
        Side(all=7, preparing_delete=1, deleting=1, unavailable=4),
        Side(all=3, preparing_delete=0, deleting=1, unavailable=0),
    )
    assert (new.active, old.active) == (4, 5)


def test_pods_that_prepare_their_update_may_count_as_new() -> None:
    found = classified(pods("1n 1o 1o:PreparingUpdate"))
    assert [names(list(group)) for group in found.groups(False)] == [["n1"], ["o1", "o2"]]
    assert [names(list(group)) for group in found.groups(True)] == [["n1", "o2"], ["o1"]]
    plain = classified(pods("1n 1o"))
    assert plain.groups(True) == (plain.new, plain.old)


@pytest.mark.parametrize(
    ("ages", "unavailable", "at"),
    [
        pytest.param((31, 60), set[str](), None, id="all long enough"),
        pytest.param((30,), {"uid-0"}, 0.001, id="to the second is not enough"),
        pytest.param((10, 20, 5), {"uid-0", "uid-1", "uid-2"}, 10.001, id="the next one in ten seconds"),
        pytest.param((10, 40), {"uid-0"}, 20.001, id="one waits"),
    ],
)
def test_min_ready_seconds(ages: tuple[int, ...], unavailable: set[str], at: float | None) -> None:
    ready = [pod(str(number), ready_since=NOW - timedelta(seconds=age)) for number, age in enumerate(ages)]
    found = classified(ready, min_ready=30)
    assert found.unavailable == unavailable
    assert found.available_at == (None if at is None else NOW + timedelta(seconds=at))
    assert found.counts.ready == len(ages)
    assert found.counts.available == len(ages) - len(unavailable)
    assert not classified(ready).unavailable


def test_only_a_pod_that_may_need_something_is_looked_at_again() -> None:
    fresh = pod("fresh", state="PreparingNormal")
    unlabelled = pod("unlabelled")
    del unlabelled.metadata.labels["pod-template-hash"]
    assert names(classified([pod("a"), fresh, unlabelled]).unsettled) == ["fresh", "unlabelled"]


def test_traits_are_those_of_the_pod() -> None:
    assert traits(pod("a")).serviceable
    assert traits(pod("a", state="")).serviceable
    assert not traits(pod("a", state="Updating")).serviceable
    assert not traits(pod("a", ready=False)).serviceable
    short = pod("a", labels={"controller-revision-hash": "new"})
    assert traits(short).revision == traits(pod("b")).revision == "new"
