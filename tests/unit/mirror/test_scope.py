"""The pods that a service needs: its groups of interests, and what changes them."""

from itertools import combinations

import msgspec
import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import CLAIM, NODE
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import Interest, bucket_of
from flotilla_common.mirror.scope import EVERYTHING, MOST_NAMESPACES, Interests, Near, Needs, Scope, covers, covers_raw
from flotilla_common.mirror.table import Table
from tests.testkit.documents import Json

SETS, JOBS = "CloneSet_apps_kruise_io", "BroadcastJob_apps_kruise_io"


class Rule(Model, frozen=True):
    """An object that needs pods of some namespaces."""

    metadata: ObjectMeta = ObjectMeta()
    near: tuple[str, ...] = ()


def namespaces(rule: Rule) -> tuple[str, ...]:
    return rule.near


class Ruled:
    """A scope with the needs, and with rules that need namespaces."""

    def __init__(self, needs: Needs | None = None) -> None:
        self.rules = Table[Rule]()
        self.scope = Scope()
        self.scope.add(Needs(near=(Near(CLAIM, self.rules, namespaces),)))
        if needs is not None:
            self.scope.add(needs)
        self.changes = 0
        self.scope.listen(self._count)
        self._version = 0

    def _count(self) -> None:
        self.changes += 1

    def rule(self, name: str, *near: str) -> None:
        """Add or change a rule."""
        self._version += 1
        meta = ObjectMeta(name=name, namespace="ns", uid=f"u-{name}", resource_version=str(self._version))
        self.rules.apply(Rule(metadata=meta, near=near))

    def remove(self, name: str) -> None:
        self.rules.remove("ns", name, f"u-{name}")

    @property
    def namespaces(self) -> set[str]:
        return {one.namespace for one in self.scope.groups().get("namespaces", ())}


@pytest.mark.parametrize(
    ("needs", "groups"),
    [
        pytest.param(Needs(), {}, id="nothing"),
        pytest.param(Needs(owners=(SETS,)), {"owners": {Interest(owner=SETS)}}, id="owners"),
        pytest.param(Needs(orphans=True), {"owners": {Interest(owner="-")}}, id="orphans"),
        pytest.param(
            Needs(owners=(SETS, JOBS), orphans=True),
            {"owners": {Interest(owner=SETS), Interest(owner=JOBS), Interest(owner="-")}},
            id="owners and orphans",
        ),
        pytest.param(Needs(sidecars=True), {"sidecars": {Interest(trait="sidecars")}}, id="sidecars"),
    ],
)
def test_what_is_needed_by_group(needs: Needs, groups: dict[str, Interests]) -> None:
    assert Ruled(needs).scope.groups() == groups


def test_needs_of_components_add_up() -> None:
    ruled = Ruled(Needs(owners=(SETS,), orphans=True))
    ruled.scope.add(Needs(owners=(JOBS,), near=(Near(NODE, Table[Rule](), namespaces),)))
    ruled.scope.add(Needs(sidecars=True))
    ruled.rule("a", "shop")
    assert ruled.scope.groups() == {
        "owners": {Interest(owner=SETS), Interest(owner=JOBS), Interest(owner="-")},
        "sidecars": {Interest(trait="sidecars")},
        "namespaces": {Interest(namespace="shop")},
    }
    assert ruled.scope.deciding == {CLAIM, NODE}


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_who_needs_everything_needs_no_groups(first: bool) -> None:
    scope = Scope()
    for needs in (None, Needs(owners=(SETS,)))[:: 1 if first else -1]:
        scope.add(needs)
    assert scope.groups() == {"all": EVERYTHING}


def test_namespaces_come_and_go_with_the_objects_that_need_them() -> None:
    ruled = Ruled()
    steps = [
        (lambda: ruled.rule("a", "shop"), {"shop"}),
        (lambda: ruled.rule("b", "shop", "bank"), {"shop", "bank"}),
        (lambda: ruled.rule("b", "bank"), {"shop", "bank"}),
        (lambda: ruled.remove("a"), {"bank"}),
        (lambda: ruled.rule("b"), set[str]()),
        (lambda: ruled.rule("b", "shop"), {"shop"}),
        (lambda: ruled.remove("b"), set[str]()),
    ]
    for step, namespaces in steps:
        step()
        assert ruled.namespaces == namespaces


def test_a_namespace_stays_until_the_last_object_that_needs_it_has_gone() -> None:
    ruled = Ruled()
    for name in ("a", "b", "c"):
        ruled.rule(name, "shop", "shop")
    for name in ("a", "b"):
        ruled.remove(name)
        assert ruled.namespaces == {"shop"}
    ruled.remove("c")
    assert ruled.scope.groups() == {}


def test_listeners_are_called_only_when_the_groups_change() -> None:
    ruled = Ruled(Needs(owners=(SETS,)))
    steps = [
        (lambda: ruled.rule("a", "shop"), True),
        (lambda: ruled.rule("a", "shop"), False),
        (lambda: ruled.rule("b", "shop"), False),
        (lambda: ruled.remove("a"), False),
        (lambda: ruled.rule("c"), False),
        (lambda: ruled.rule("b", "bank"), True),
        (lambda: ruled.remove("b"), True),
        (lambda: ruled.scope.hold(("*",)), False),
        (lambda: ruled.scope.hold(("1", "3")), True),
        (lambda: ruled.scope.hold(("1", "3")), False),
        (lambda: ruled.scope.hold(()), True),
    ]
    for number, (step, changes) in enumerate(steps):
        before = ruled.changes
        step()
        assert ruled.changes - before == int(changes), f"step {number}"


def test_of_many_namespaces_all_pods_are_needed() -> None:
    ruled = Ruled()
    for number in range(MOST_NAMESPACES):
        ruled.rule(f"r{number}", f"n{number}")
    assert len(ruled.namespaces) == MOST_NAMESPACES
    ruled.rule("more", "one")
    assert ruled.scope.groups() == {"namespaces": EVERYTHING}
    ruled.remove("r0")
    assert len(ruled.namespaces) == MOST_NAMESPACES
    assert ruled.scope.groups()["namespaces"] != EVERYTHING


@pytest.mark.parametrize(
    ("buckets", "owners"),
    [
        (("*",), {Interest(owner=SETS)}),
        (("1", "3"), {Interest(owner=SETS, bucket="1"), Interest(owner=SETS, bucket="3")}),
        ((), set[Interest]()),
    ],
    ids=["all", "some", "no"],
)
def test_of_owners_the_held_buckets_are_needed(buckets: tuple[str, ...], owners: set[Interest]) -> None:
    ruled = Ruled(Needs(owners=(SETS,), sidecars=True))
    ruled.scope.hold(buckets)
    assert ruled.scope.groups().get("owners", frozenset()) == owners
    assert ruled.scope.groups()["sidecars"] == {Interest(trait="sidecars")}
    orphans = Needs(orphans=True)
    ruled.scope.add(orphans)
    assert ruled.scope.groups()["owners"] == owners | {Interest(owner="-")}, "an orphan has no bucket"


def overlap(one: str, other: str) -> bool:
    """Report whether some subject matches both filters, which have one token for each of its tokens."""
    pairs = zip(one.split("."), other.split("."), strict=True)
    return all(a == b or "*" in (a, b) for a, b in pairs)


@pytest.mark.parametrize("buckets", [("*",), ("1", "2"), ()], ids=["all", "some", "no"])
@pytest.mark.parametrize("count", [2, MOST_NAMESPACES + 1])
def test_no_two_filters_of_a_group_overlap(buckets: tuple[str, ...], count: int) -> None:
    """JetStream refuses a consumer with two that do."""
    ruled = Ruled(Needs(owners=(SETS, JOBS), orphans=True, sidecars=True))
    ruled.scope.hold(buckets)
    for number in range(count):
        ruled.rule(f"r{number}", f"n{number}")
    groups = ruled.scope.groups()
    assert groups.keys() == {"owners", "sidecars", "namespaces"}
    for interests in groups.values():
        filters = map(subjects.interest_filter, interests)
        assert [pair for pair in combinations(filters, 2) if overlap(*pair)] == []


POD: Json = {
    "metadata": {
        "name": "web-x",
        "namespace": "shop",
        "annotations": {"kruise.io/sidecarset-injected-list": "log"},
        "ownerReferences": [
            {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": True}
        ],
    }
}


@pytest.mark.parametrize(
    ("interests", "covered"),
    [
        pytest.param(set[Interest](), False, id="nothing"),
        pytest.param(EVERYTHING, True, id="everything"),
        pytest.param({Interest(namespace="shop")}, True, id="its namespace"),
        pytest.param({Interest(namespace="bank")}, False, id="another namespace"),
        pytest.param({Interest(owner=SETS)}, True, id="its kind of owner"),
        pytest.param({Interest(owner=SETS, bucket=bucket_of("shop", "web"))}, True, id="its bucket"),
        pytest.param({Interest(owner=SETS, bucket=bucket_of("shop", "api"))}, False, id="another bucket"),
        pytest.param({Interest(owner=JOBS), Interest(owner="-")}, False, id="other owners"),
        pytest.param({Interest(trait="sidecars")}, True, id="its trait"),
        pytest.param({Interest(owner=JOBS), Interest(namespace="shop")}, True, id="one of two"),
    ],
)
def test_a_pod_is_covered_by_any_interest_that_has_its_tokens(interests: Interests, covered: bool) -> None:
    raw = msgspec.json.encode(POD)
    assert covers(interests, msgspec.json.decode(raw, type=Pod)) is covered
    assert covers_raw(interests, raw) is covered
